/*
 * say - userlog(), for formats that are const and checked.
 */
#ifndef TMQFORWARD_SAY_H
#define TMQFORWARD_SAY_H

void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
