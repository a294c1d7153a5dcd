/*
 * The three numbers that change for three reasons: the program, what goes over a socket, what lies on disk.
 */
#ifndef VERSION_H
#define VERSION_H

#define ATMIQ_VERSION "0.1.0"	/* of the programs and the library; the Makefile has it too */
#define WIRE_VERSION 2		/* raise when a frame of wire.h changes */
#define DISK_VERSION 1		/* raise when a record of qspace/FORMAT.md or a device file changes */

#endif
