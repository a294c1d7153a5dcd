#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "interrupt.h"
#include "session.h"
#include "ulog.h"
#include "version.h"

/* The device may be missing as long as its directory is there: crdl makes it. */
static int
check_device(struct session *s)
{
	struct device d;
	char *why = NULL, *copy;
	int rc = device_read(s->device, &d, &why);

	if (rc == DEVE_NOENT && (copy = strdup(s->device)) != NULL) {
		if (access(dirname(copy), F_OK) == 0)
			rc = DEVE_OK;
		free(copy);
	}
	if (rc != DEVE_OK)
		say_error(s, rc == DEVE_OWNER ? 1105 : 1104, "%s", why != NULL ? why : s->device);
	free(why);
	return rc == DEVE_OK ? 0 : -1;
}

static int
start_up(struct session *s, int argc, char **argv)
{
	if (argc > 1 && argv[1][0] == '-' && argv[1][1] != '\0') {
		say_error(s, 1100, "unknown option %.60s", argv[1]);
		fprintf(stderr, "usage: [QMCONFIG=device] qmadmin [device]\n");
		return -1;
	}
	if (argc > 2) {
		say_error(s, 1102, "extra argument \"%.60s\"; only the device's name is expected", argv[2]);
		return -1;
	}
	s->device = argc > 1 ? argv[1] : getenv("QMCONFIG");
	if (s->device == NULL || *s->device == '\0') {
		say_error(s, 1101, "no device was named, and QMCONFIG is not set");
		return -1;
	}
	return check_device(s);
}

static void
talk(struct session *s)
{
	interrupt_catch();
	say(s, "qmadmin of atmiq " ATMIQ_VERSION ", Copyright (c) 2026 the authors of atmiq, Apache License 2.0\nQMCONFIG=%s\n",
	    s->device);
	console_loop(&s->con, "> ");
	if (!s->con.quit && reader_is_terminal(s->con.reader))
		fputc('\n', s->con.out);
}

int
main(int argc, char **argv)
{
	struct session s;
	int rc;

	ulog_program("qmadmin");
	memset(&s, 0, sizeof s);
	if (console_open(&s.con, "qmadmin", STDIN_FILENO) != 0)
		return 1;
	s.con.program = &s;
	s.con.run = command_run;
	s.con.trouble = say_trouble;
	if ((rc = start_up(&s, argc, argv)) == 0)
		talk(&s);
	console_close(&s.con);
	document_free(&s.criteria);
	forget_transactions(&s);
	return rc == 0 ? 0 : 1;
}
