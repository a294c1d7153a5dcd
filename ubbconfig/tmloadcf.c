/*
 * tmloadcf - reads a UBBCONFIG file, checks all of it, writes TUXCONFIG.  tmloadcf(1).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "ubb_impl.h"
#include "ulog.h"

struct options {
	bool syntax_only, yes, needs;
	long blocks;			/* 0: no limit */
	const char *source, *tuxconfig;
};

static int
usage(void)
{
	fprintf(stderr, "usage: tmloadcf [-n] [-y] [-c] [-b blocks] {ubbconfig | -}\n");
	return 1;
}

static bool
options_parse(int argc, char **argv, struct options *o)
{
	char *end;
	int c;

	*o = (struct options){ .tuxconfig = getenv("TUXCONFIG") };
	while ((c = getopt(argc, argv, "nycb:")) != -1)
		switch (c) {
		case 'n': o->syntax_only = true; break;
		case 'y': o->yes = true; break;
		case 'c': o->needs = true; break;
		case 'b':
			o->blocks = strtol(optarg, &end, 10);
			if (*end != '\0' || o->blocks <= 0) {
				fprintf(stderr,
				    "tmloadcf: -b is \"%s\"; allowed is a number of 512-byte blocks above 0\n", optarg);
				return false;
			}
			break;
		default:
			return false;
		}
	if (optind != argc - 1)
		return false;
	o->source = argv[optind];
	return true;
}

static int
load(const struct options *o, struct ubb **u)
{
	bool from_stdin = strcmp(o->source, "-") == 0, writes = !o->syntax_only && !o->needs;
	struct ubb_wanted want = { .tuxconfig = writes ? o->tuxconfig : NULL, .local = writes };
	FILE *in = from_stdin ? stdin : fopen(o->source, "re");
	int errors;

	if (in == NULL) {
		fprintf(stderr, "tmloadcf: %s: %s\n", o->source, strerror(errno));
		return -1;
	}
	errors = ubb_load(in, from_stdin ? "stdin" : o->source, &want, stderr, NULL, u);
	if (!from_stdin)
		fclose(in);
	if (errors > 0)
		fprintf(stderr, "tmloadcf: %d error%s; nothing was written\n", errors, errors == 1 ? "" : "s");
	return errors;
}

/* -c.  No System V IPC: what counts are processes, their sockets and open files. */
static void
print_needs(const struct ubb *u)
{
	size_t i, j;

	printf("Minimum needs of each machine (no System V shared memory, semaphores or message queues are used)\n\n");
	printf("%-30s %9s %9s %9s\n", "LMID", "Processes", "Sockets", "Accessers");
	for (i = 0; i < u->n_machines; i++) {
		const struct ubb_machine *m = &u->machines[i];
		long servers = 0;

		for (j = 0; j < u->n_servers; j++) {
			const struct ubb_group *g = ubb_group_by_name(u, u->servers[j].srvgrp);

			if (g != NULL && strcmp(g->lmid[0], m->lmid) == 0)
				servers += u->servers[j].min;
		}
		printf("%-30s %9ld %9ld %9ld\n", m->lmid, servers + 1, servers + 1, m->maxaccessers);
	}
}

/* A BBL runs there; is it of the TUXCONFIG at `path`?  Another application may have the same IPCKEY. */
static bool
bbl_is_of(const char *rundir, const char *path)
{
	char file[300], line[4200] = "";
	FILE *f;

	snprintf(file, sizeof file, "%s/bbl.lock", rundir);
	if ((f = fopen(file, "re")) == NULL)
		return true;
	if (fgets(line, sizeof line, f) == NULL)
		line[0] = '\0';
	fclose(f);
	line[strcspn(line, "\n")] = '\0';
	return strchr(line, ' ') == NULL || strcmp(strchr(line, ' ') + 1, path) == 0;
}

/* The application that the TUXCONFIG at `path` describes is running. */
static bool
is_booted(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char *why = NULL, endpoint[sizeof address.sun_path + sizeof "ipc://" - 1];
	struct ubb *old = NULL;
	bool booted = false;
	int fd;

	if (tuxconfig_read(path, &old, &why) == 0 && ubb_bbl_endpoint(old, endpoint, sizeof endpoint) == 0 &&
	    (fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0) {
		memcpy(address.sun_path, endpoint + strlen("ipc://"), strlen(endpoint + strlen("ipc://")) + 1);
		booted = connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && bbl_is_of(old->rundir, path);
		close(fd);
	}
	ubb_free(old);
	free(why);
	return booted;
}

/* The answer's first letter counts; q, no and the end of the input mean no. */
static bool
agreed(const char *path, bool exists)
{
	char answer[256];

	printf("%s TUXCONFIG file: %s [y, q] ? ", exists ? "Overwrite" : "Initialize", path);
	for (;;) {
		fflush(stdout);
		if (fgets(answer, sizeof answer, stdin) == NULL) {
			putchar('\n');
			return false;
		}
		switch (answer[strspn(answer, " \t")]) {
		case 'y': case 'Y': return true;
		case 'q': case 'Q': case 'n': case 'N': return false;
		default: printf("Please answer y or q: ");
		}
	}
}

static int
write_tuxconfig(const struct options *o, const struct ubb *u)
{
	struct stat st;
	bool exists = stat(o->tuxconfig, &st) == 0;
	long blocks;

	if (exists && !S_ISREG(st.st_mode)) {
		fprintf(stderr, "tmloadcf: %s is not a file; nothing was written\n", o->tuxconfig);
		return 1;
	}
	if (exists && is_booted(o->tuxconfig)) {
		fprintf(stderr,
		    "tmloadcf: the application of %s is running; shut it down with tmshutdown first; nothing was "
		    "written\n",
		    o->tuxconfig);
		return 1;
	}
	if (!o->yes && !agreed(o->tuxconfig, exists))
		return 1;
	if (tuxconfig_write(u, o->tuxconfig) != 0) {
		if (errno == ENAMETOOLONG || errno == EINVAL)
			fprintf(stderr,
			    "tmloadcf: ATMIQ_RUNBASE is \"%s\"; allowed is an absolute path so short that socket paths "
			    "below it fit 107 bytes; "
			    "nothing was written\n",
			    getenv("ATMIQ_RUNBASE") ? getenv("ATMIQ_RUNBASE") : "");
		else
			fprintf(stderr, "tmloadcf: %s: %s; nothing was written\n", o->tuxconfig, strerror(errno));
		return 1;
	}
	blocks = stat(o->tuxconfig, &st) == 0 ? (long)((st.st_size + 511) / 512) : 0;
	if (o->blocks > 0 && blocks > o->blocks)
		ulog("CMDTUX_CAT:0: WARN: TUXCONFIG file %s takes %ld blocks; -b allows %ld", o->tuxconfig, blocks,
		    o->blocks);
	if (!exists)
		ulog("CMDTUX_CAT:879: INFO: A new file system has been created. (size = %ld 512-byte blocks)", blocks);
	ulog("CMDTUX_CAT:871: INFO: TUXCONFIG file %s has been created", o->tuxconfig);
	return 0;
}

int
main(int argc, char **argv)
{
	struct options o;
	struct ubb *u = NULL;
	int rc = 0;

	ulog_program("tmloadcf");
	if (!options_parse(argc, argv, &o))
		return usage();
	if (!o.syntax_only && !o.needs && (o.tuxconfig == NULL || *o.tuxconfig == '\0')) {
		fprintf(
		    stderr, "tmloadcf: the environment variable TUXCONFIG is not set; it names the file to write\n");
		return 1;
	}
	if (load(&o, &u) != 0)
		return 1;
	if (o.needs)
		print_needs(u);
	else if (!o.syntax_only) {
		const struct ubb_machine *m = ubb_machine_here(u);

		ulog_prefix(m->ulogpfx);
		rc = write_tuxconfig(&o, u);
	}
	ubb_free(u);
	return rc;
}
