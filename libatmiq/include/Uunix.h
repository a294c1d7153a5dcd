/*
 * Uunix.h - what programs of the Unix age expect to find behind it, and Uunixerr: which system call failed
 * after tperrno or Ferror said so.
 */
#ifndef UUNIX_H
#define UUNIX_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

extern int Uunixerr;
void Uunix_err(char *s);	/* userlog: s, and which system call failed */

/* Values of Uunixerr. */
#define UMINVAL 0
#define UCLOSE 1
#define UCREAT 2
#define UEXEC 3
#define UFCTNL 4
#define UFORK 5
#define ULSEEK 6
#define UMSGCTL 7
#define UMSGGET 8
#define UMSGSND 9
#define UMSGRCV 10
#define UOPEN 11
#define UPLOCK 12
#define UREAD 13
#define USEMCTL 14
#define USEMGET 15
#define USEMOP 16
#define USHMCTL 17
#define USHMGET 18
#define USHMAT 19
#define USHMDT 20
#define USTAT 21
#define UWRITE 22
#define UMALLOC 23
#define UMAXVAL 24

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
