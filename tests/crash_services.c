/*
 * crash_services - see given_serve.h.  CRASH_KILLS says how often; a hundred times when it does not.
 */
#include "given_serve.h"

static void
each_request_is_answered_or_on_its_error_queue_once(void)
{
	serve_run(serve_kills(100));
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = { UNIT(each_request_is_answered_or_on_its_error_queue_once) };

	if (serve_is_client(argc, argv))
		return serve_client(argv);
	return unit_run("crash: services that fail, die and hang", tests, UNIT_COUNT(tests));
}
