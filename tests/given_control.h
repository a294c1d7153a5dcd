/*
 * given_control - a page that the driver of a crash run shares with its clients and with the failing writes of TMQUEUE
 * (a file, mapped by all).
 */
#ifndef GIVEN_CONTROL_H
#define GIVEN_CONTROL_H

#include <stdatomic.h>
#include <stdint.h>

#define CONTROL_CLIENTS 64
enum { FAULT_EIO = 1, FAULT_ENOSPC = 2, FAULT_SHORT = 4, FAULT_SYNC = 8 };

struct control {
	_Atomic uint32_t epoch;		/* odd while somebody is killed, or writes fail; even when all is well again */
	_Atomic uint32_t owners;	/* how often the queue manager ended, or had to open its space anew */
	_Atomic uint32_t deaths;	/* how often it was killed: what it held for transactions is free again */
	_Atomic uint32_t stop;		/* clients: end */
	_Atomic uint32_t fault_kinds, fault_one_in;	/* one_in 0: none fails */
	_Atomic uint32_t faults;	/* that happened */
	_Atomic uint32_t ops[CONTROL_CLIENTS];
};

#endif
