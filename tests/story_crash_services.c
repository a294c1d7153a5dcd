/*
 * story_crash_services - a short run of what crash_services does at length.
 */
#include "given_serve.h"

static void
each_request_is_answered_or_on_its_error_queue_once(void)
{
	serve_run(8);
}

int
main(int argc, char **argv)
{
	static const struct unit_test tests[] = { UNIT(each_request_is_answered_or_on_its_error_queue_once) };

	if (serve_is_client(argc, argv))
		return serve_client(argv);
	return unit_run("crash: services that fail, die and hang", tests, UNIT_COUNT(tests));
}
