/*
 * The numbers that change, each for its own reason: the program, what goes over a socket, what lies on disk.
 */
#ifndef VERSION_H
#define VERSION_H

#define ATMIQ_VERSION "0.1.0"	/* of the programs and the library; the Makefile has it too */
#define WIRE_VERSION 4		/* raise when a frame of wire.h changes */
#define DISK_VERSION 3		/* of a queue space: raise when a record of qspace/FORMAT.md changes */
#define DISK_VERSION_OLDEST 1	/* what is still read; a space becomes one of the present version when it is opened */
#define DEVICE_VERSION 1	/* of a device file */

#endif
