/*
 * tmenv.h - keywords of other compilers that old sources carry.  They mean nothing here.
 */
#ifndef TMENV_H
#define TMENV_H

#ifndef _TMDLLENTRY
#define _TMDLLENTRY
#endif
#ifndef _TMDLLIMPORT
#define _TMDLLIMPORT
#endif
#ifndef _TM_FAR
#define _TM_FAR
#endif
#ifndef _TM_NEAR
#define _TM_NEAR
#endif
#ifndef _TM_CDECL
#define _TM_CDECL
#endif
#ifndef _
#define _(args) args
#endif
#endif
