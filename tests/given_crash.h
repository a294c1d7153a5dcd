/*
 * given_crash - clients that write down what they were told, servers that are killed, and an oracle that compares.
 *
 * Clients are programs of their own (this program, run again), each with a log of one line for each call:
 *
 *     E q seq ok|no|unknown        an enqueue: acknowledged, surely not done, outcome not known
 *     D q producer seq ok|no|unknown   a dequeue and its commit
 *
 * The oracle reads all logs and what a last drain found on the queues, and asserts for every message:
 *     acknowledged                 comes out exactly once; where a commit's outcome is unknown it may have been that one
 *     outcome unknown              comes out once or not at all
 *     refused                      never comes out
 * and that what is left on a queue stands in the order in which each producer sent it.
 *
 * main() begins with:  if (crash_is_client(argc, argv)) return crash_client(argc, argv);
 */
#ifndef GIVEN_CRASH_H
#define GIVEN_CRASH_H

#include "given.h"

#define CRASH_CLIENTS 8

bool crash_is_client(int argc, char **argv);
int crash_client(int argc, char **argv);

/* Clients enqueue and dequeue on SHARED and on a queue of their own while TMQUEUE, and now and then BBL, is killed. */
void crash_queue(int kills);
/* Clients send requests and fetch replies while TMQUEUE, TMQFORWARD, the service and BBL are killed in turn. */
void crash_forward(int kills);
int crash_kills(int otherwise);	/* CRASH_KILLS of the environment */

/*
 * Clients enqueue, dequeue, send requests and fetch replies while the application is booted and shut down so many times, in
 * every way, with kills and interrupts.  After each round nothing of it is left but its files, and at the end no message is
 * missing.
 */
void crash_boot(int rounds);
void crash_zap(int rounds);	/* R61: the error of tmshutdown is ignored, IPC is zapped, and all booted again */
int crash_rounds(int otherwise);	/* CRASH_ROUNDS of the environment */

/* --- given_crash.c's, for other runs with the same clients --- */

struct crowd { struct given *g; pid_t pid[CRASH_CLIENTS]; };
/* kind: queue; forward; boot: the first half of each */
void crowd_start(struct crowd *c, struct given *g, const char *kind);
bool crowd_is_at_work(void *crowd);		/* all have something in their logs: for wait_until() */
long crowd_wrote(const struct crowd *c, int client);	/* bytes in its log */
void crowd_stop(struct crowd *c);
/* Drains these queues (clients' own, SHARED, ANSWER) and judges; `disturbed`: how often something was done to the system. */
void crowd_oracle(struct given *g, int first_queue, int last_queue, int disturbed);

#endif
