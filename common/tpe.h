/*
 * tpe - the name of a tperrno code, for people: "TPESVCFAIL".
 */
#ifndef TPE_H
#define TPE_H

const char *tpe_name(int error);	/* "?" for a number that is none; "none" for 0 */

#endif
