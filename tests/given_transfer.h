/*
 * given_transfer - fifty clients move messages from one queue space to the other and back in transactions, while those who serve
 * them, and they themselves, are killed.
 *
 * Each message is a different one, so what must be true at the end can be counted: every one is there, once, in one of the two
 * spaces, and no space holds anything for a transaction.
 *
 * main() begins with:  if (transfer_is_client(argc, argv)) return transfer_client(argv);
 */
#ifndef GIVEN_TRANSFER_H
#define GIVEN_TRANSFER_H

#include "given.h"

bool transfer_is_client(int argc, char **argv);
int transfer_client(char **argv);

double transfer_seconds(double otherwise);	/* TRANSFER_SECONDS of the environment */
/* processes x threads clients; a kill about each `pause_ms` once the one before is over. */
void transfer_run(double seconds, int processes, int threads, int pause_ms);

#endif
