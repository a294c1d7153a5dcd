/*
 * TMQFORWARD - takes messages from queues, calls the service named like the queue, puts the answers on the reply queues.
 */
#include <stdlib.h>
#include <string.h>

#include "atmiq_ext.h"
#include "check.h"
#include "forward.h"
#include "options.h"
#include "say.h"

static int	/* what must be so before it may boot */
boot(int argc, char **argv, const struct atmiq_server *server, struct options *o)
{
	char why[600];

	if (options_parse(server->argc, server->argv, o, why, sizeof why) != 0 ||
	    check_place(getenv("TUXCONFIG"), server->group, server->srvid, why, sizeof why) != 0) {
		say("QM_CAT:1628: ERROR: TMQFORWARD cannot boot: %s", why);
		return -1;
	}
	if (check_names_services(argc, argv)) {
		say("QM_CAT:1628: ERROR: TMQFORWARD cannot boot: it offers no services, but CLOPT names some with -s");
		return -1;
	}
	for (size_t i = 0; i < o->n_warnings; i++)
		say("%s", o->warning[i]);
	return 0;
}

int
main(int argc, char **argv)
{
	static struct atmiq_server server;
	static struct options o;
	static struct forwarder f;
	int status = 1;

	if (atmiq_server_attach(argc, argv, &server) == -1) {
		say("QM_CAT:1628: ERROR: TMQFORWARD cannot boot: %s", tpstrerror(tperrno));
		return 1;
	}
	if (boot(argc, argv, &server, &o) != 0)
		goto done;
	if (forward_init(&f, &o, server.group) != 0) {
		say("QM_CAT:1600: ERROR: TMQFORWARD cannot boot: no buffers: %s", tpstrerror(tperrno));
		goto done;
	}
	if (forward_start(&f) != 0) {
		say("QM_CAT:1601: ERROR: TMQFORWARD cannot boot: no threads for -w %zu", o.workers);
		forward_stop(&f);
		goto done;
	}
	atmiq_server_ready();
	forward_run(&f);
	forward_stop(&f);
	status = 0;
done:
	forward_done(&f);
	atmiq_server_detach(status);
	return status;
}
