/*
 * mainexit.h - included by programs before main for what a platform needs at its start and end.  Nothing here.
 */
#ifndef MAINEXIT_H
#define MAINEXIT_H
#endif
