/*
 * ulog - lines of the user log, in the format that log shippers split on:
 *
 *     hhmmss.node!process.pid.thread.context: [gtrid xN xN xN: ]text
 *
 * appended to <prefix>.mmddyy.  The prefix is, in this order: environment ULOGPFX, ulog_prefix(), "ULOG"; it is fixed
 * at the first line.  The first line of a process names date and version.  ULOGMILLISEC=Y adds milliseconds;
 * ULOGDEBUG beginning with 1 or y copies lines to stderr (and lets ulog_debug() lines through); ULOGSTDERR=y copies them alone.
 *
 * Texts of ours begin  CATALOG_CAT:number: LEVEL:  e.g. "QM_CAT:1105: ERROR: ...".
 * One line an operator can act on: who, which queue, what, why.
 *
 * Errors     A line that cannot be written is dropped; ulog() then returns -1.  errno is preserved.
 * Threads    Any thread.  One write(2) a line, O_APPEND, so processes share the file.
 */
#ifndef ULOG_H
#define ULOG_H

#include <stdarg.h>

void ulog_program(const char *name);	/* copied; what stands between ! and .pid; "?proc" when never called */
void ulog_program_at(char *const *name);	/* looked at for each line, before ulog_program(): a variable of the program */
void ulog_prefix(const char *prefix);	/* copied; ULOGPFX of the configuration */
void ulog_context(long context);	/* of the calling thread; 0 in single-context programs */
void ulog_gtrid(const unsigned long xid[3]);	/* of the calling thread; NULL outside a transaction */

int ulog(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int ulog_v(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
void ulog_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
