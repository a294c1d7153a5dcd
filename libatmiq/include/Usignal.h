/*
 * Usignal.h - signals, under the names that old servers use to keep a section free of them.
 */
#ifndef USIGNAL_H
#define USIGNAL_H

#include <signal.h>

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef void (*Usigfunc_t)(int);
Usigfunc_t Usignal(int sig, Usigfunc_t func);	/* as signal(); interrupted calls are restarted */
int Usiginit(void);

#define UDEFERSIGS() ((void)0)
#define URESUMESIGS() ((void)0)
#define UENSURESIGS() ((void)0)
#define UGDEFERLEVEL() 0
#define USDEFERLEVEL(level) ((void)(level))

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
