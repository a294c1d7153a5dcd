/*
 * context - joining and leaving, for join.c; the rest is in impl.h.
 */
#ifndef CONTEXT_H
#define CONTEXT_H

#include "impl.h"

enum context_mode { MODE_NONE, MODE_SINGLE, MODE_MULTI };
int context_join(const char *usrname, const char *cltname, bool multi);	/* 0 or a TPE code */
int context_part(void);
void context_exit(void);

/* join.c, called with no context lock wanted: */
int app_join(struct context *ctx, const char *usrname, const char *cltname);
void app_leave(struct context *ctx);
void app_fork_child(void);

#endif
