/*
 * userlog.h - lines of the user log.  A program may set proc_name; it stands between ! and the process id.
 */
#ifndef USERLOG_H
#define USERLOG_H

#include <stdarg.h>

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

extern char *proc_name;
int userlog(char *fmt, ...);		/* bytes written, or -1 */
int vuserlog(char *fmt, va_list ap);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
