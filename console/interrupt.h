/*
 * interrupt - the BREAK key: it ends a wait for input and the output of the command that runs, not what the command does.
 */
#ifndef INTERRUPT_H
#define INTERRUPT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

void interrupt_catch(void);		/* SIGINT from now on; SIGPIPE is ignored */
bool interrupt_came(void);
void interrupt_forget(void);
/* read(2) that an interrupt ends with EINTR even when it came just before. */
ssize_t interruptible_read(int fd, void *buf, size_t n);

#endif
