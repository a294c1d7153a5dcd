/*
 * given - a system of real processes for one story: configuration, queue space, servers; all in a directory of its own.
 *
 *     struct given *g = given_system(&(struct given_conf){ .queues = "qcreate ORDERS fifo none 0 0 100% 0% \"\"\n" });
 *     put(g, "ORDERS", "two boxes of nails");
 *     given_done(g);
 *
 * The story's own process is a client of the system: given_system() puts TUXDIR, TUXCONFIG, APPDIR, QMCONFIG, PATH and so
 * on in its environment.  One system at a time; two runs on one machine do not meet (directory and IPCKEY are their own).
 *
 * Errors     What cannot be set up fails the running test at once, with the output of the command that failed.
 * Cleaning   A system that a failed test left behind is killed, process by process, at the next given_system() or at exit.
 */
#ifndef GIVEN_H
#define GIVEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "atmi.h"
#include "unit.h"

/* All members may be left out. */
struct given_conf {
	const char *resources;		/* further lines of *RESOURCES, each beginning with a name in column 1 */
	const char *groups;		/* further lines of *GROUPS */
	const char *tmqueue;		/* what follows TMQUEUE SRVGRP=QUE1 SRVID=1; default: CLOPT="-s QSPACE:TMQUEUE -- -t 30" */
	const char *servers;		/* further lines of *SERVERS */
	const char *services;		/* lines of *SERVICES */
	const char *space;		/* answers to qspacecreate after name and key, one line; default: 4000 20 50 50 2000 ERRQ n 16 */
	const char *space_options;	/* such as -n 100B */
	long device_pages;		/* default: 20000 */
	const char *queues;		/* qmadmin lines that follow qopen; ERRQ exists already */
	const char *server_source;	/* C text of APPDIR/server, built by buildserver and booted in group APP as SRVID 1 */
	const char *server_services;	/* its -s options */
	const char *server_params;	/* further parameters of its entry in *SERVERS */
	int spaces;			/* how many queue spaces, 1 to 4; each is alone in a device and in a group, see below; default: 1 */
	const char *tmqueue_params;	/* of every TMQUEUE, before its CLOPT; default: RESTART=Y GRACE=0 MAXGEN=10, several spaces: MAXGEN=255 */
	bool points;			/* every TMQUEUE, and `server`, stops or dies where given_point_set() says (common/point.h) */
	bool no_queue_group;		/* no TMQUEUE: a system of services alone */
	bool only_files;		/* write the files, run nothing */
	bool not_booted;		/* all made, but not booted */
};
struct given;

struct given *given_system(const struct given_conf *conf);
struct given *given_system_in(struct given *g, const struct given_conf *conf);	/* in a directory of given_directory() */
struct given *given_directory(void);		/* only the directory and the environment; conf's defaults for given_write_ubb() */
void given_done(struct given *g);		/* shuts down, asserts that no process and no socket is left, removes the directory */
struct given *given_standing(void);		/* the system of this process; NULL: none */
void given_boot(struct given *g);
void given_shutdown(struct given *g);

/*
 * Spaces, from 1: QSPACE, QSPACE2, QSPACE3, QSPACE4, which are the services of TMQUEUE too, in groups QUE1 to QUE4 (GRPNO 2, 102, 103,
 * 104) and devices QUE, QUE2, QUE3, QUE4.  All have the same queues.
 */
const char *given_space(int n);
const char *given_group(int n);
const char *given_device(const struct given *g, int n);
char *given_qmadmin_of(const struct given *g, int space, const char *lines);	/* as given_qmadmin(), after qopen of that space */
pid_t given_tmqueue(const struct given *g, int space);		/* the TMQUEUE of its group; 0: none runs */
pid_t given_pid_as(const struct given *g, int grpno, int srvid);	/* the server with this place in *SERVERS; 0: none runs */

const char *given_dir(const struct given *g);	/* APPDIR */
const char *given_tuxdir(const struct given *g);
long given_ipckey(const struct given *g);
const char *given_rundir(const struct given *g);	/* as TUXCONFIG has it; "" before tmloadcf */
/* A file of the directory: replaced by text; read as a malloc'ed string (NULL: not there). */
void given_write(const struct given *g, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
char *given_read(const struct given *g, const char *name);
bool given_exists(const struct given *g, const char *name);
char *given_log(const struct given *g);		/* today's userlog, malloc'ed, never NULL */
bool given_logged(const struct given *g, const char *text);

/* --- commands --- */

struct ran { int status; char *out, *err; };	/* status: exit status, 128 + signal, or -1 when it did not end in time */
/* Run a shell command in the directory with `input` (NULL: none) on its standard input, at most a minute.  ran_free(). */
struct ran given_run(const struct given *g, const char *input, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The same, for a command that must end with 0: else the test fails and shows its output.  Returns stdout, malloc'ed. */
char *given_ok(const struct given *g, const char *input, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
char *given_qmadmin(const struct given *g, const char *lines);	/* after qopen QSPACE */
void ran_free(struct ran *r);
bool has(const char *text, const char *piece);	/* strstr that takes NULL */
int count_of(const char *text, const char *piece);

/* --- processes --- */

/* The process of this system whose program is `name` ("BBL", "TMQUEUE", "server"); nth from 0, oldest first; 0: none. */
pid_t given_pid(const struct given *g, const char *name, int nth);
int given_count(const struct given *g, const char *name);	/* NULL: all */
void given_kill(const struct given *g, const char *name, int signal);	/* waits until that process is gone, for KILL and TERM */
bool process_gone(pid_t pid);

/*
 * Test points.  `who` is the directory under points/ that the process looks at: the group's name of a TMQUEUE, "server", or one
 * that a client was started with (ATMIQ_TEST_POINT).  given_point_set() says what is to happen ("kill", "stop", "kill.1": the
 * second time) and forgets what happened before; *_hit: it has happened; *_clear: nothing is to happen any more.
 */
void given_point_set(const struct given *g, const char *who, const char *point, const char *action);
bool given_point_hit(const struct given *g, const char *who, const char *point);
void given_point_clear(const struct given *g, const char *who);
const char *given_point_dir(const struct given *g, const char *who);	/* made when it is not there */
char process_state(pid_t pid);			/* its letter in /proc, T: stopped; 0: there is none */

/* Wait until cond() holds, at most `seconds` (sanitizers: four times that).  What it last answered. */
bool wait_until(bool (*cond)(void *arg), void *arg, double seconds);
bool wait_pid_changes(const struct given *g, const char *name, pid_t old, double seconds);	/* a new one runs */
double now_s(void);			/* monotonic */
void nap_ms(int ms);			/* for loops that retry; no test waits a fixed time */

/* --- a client's few words; the space is QSPACE --- */

void put(const char *queue, const char *text);			/* asserts success */
void put_in(const char *space, const char *queue, const char *text);	/* the same for a space that is not QSPACE */
char *take_from(const char *space, const char *queue);
long depth_in(const struct given *g, int space, const char *queue);
char *take(const char *queue);					/* malloc'ed; NULL: nothing there; asserts any other failure away */
char *take_within(const char *queue, double seconds);		/* waits for one */
int take_diagnostic(const char *queue);				/* what a dequeue answers: 0 (message is gone), or the QME code */
long depth(const struct given *g, const char *queue);		/* messages on it, as qinfo says; -1: no such queue */
bool peeks(const char *queue, const char *text);		/* its first eligible message is this */
#define GIVEN_CALL_OK(call) given_call_ok((call), #call, __FILE__, __LINE__)
bool given_call_ok(int rc, const char *what, const char *file, int line);	/* fails the test with tperrno and its text */

#endif
