/*
 * given_matrix - the library of crashes: one transaction over several queue spaces, and one process of it that stops or dies at
 * one named point (common/point.h); afterwards it must have happened everywhere or nowhere.
 *
 * The transaction takes a message from SRC of space 1, calls a service that enqueues it in OUT of the last space, and enqueues it in
 * ALSO of space 2.  Whatever happens, within MATRIX_RECOVERY_S of all processes being there again:
 *     the message is on both targets and not in SRC, or in SRC and on no target, with its retry counted once (a queue manager
 *     of space 1 that died may not have counted it)
 *     that agrees with what tpcommit() said: 0 both, TPEABORT not, TPETIME (and a dead client) either
 *     no space has a branch, a decision or a held message left
 *
 * main() begins with:  if (matrix_is_client(argc, argv)) return matrix_client(argv);
 */
#ifndef GIVEN_MATRIX_H
#define GIVEN_MATRIX_H

#include "given.h"

#define MATRIX_RECOVERY_S 10

bool matrix_is_client(int argc, char **argv);
int matrix_client(char **argv);

/*
 * Every point x what is done to the process x number of spaces x who is restarted first.  `stride`: each how manieth round of
 * the plan; `side_by_side`: systems.  Prints the table; asserts that no round failed and that each point was reached.
 */
void matrix_run(int stride, int side_by_side);

#endif
