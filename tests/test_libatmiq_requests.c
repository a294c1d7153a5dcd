/*
 * requests that wait in a server: which is served next, which is not served, what they cost their sender, and threads that wait
 * for them.  One process: a client's end of the link, and the server's queue without a server around it.
 */
#include "unit.h"

#include <pthread.h>
#include <unistd.h>

#include "clock.h"
#include "link_impl.h"
#include "svr.h"
#include "ulog.h"

static char dir[64], endpoint[128];
static struct link_client *client;
static uint64_t last_id;

static int64_t
in_ms(int ms)
{
	return clock_mono_us() + (int64_t)ms * 1000;
}

static void
given_link(void)
{
	snprintf(dir, sizeof dir, "/tmp/test_requests.XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(endpoint, sizeof endpoint, "ipc://%s/socket", dir);
	CU_ASSERT_EQUAL_FATAL(link_server_open(endpoint, 0600, &svr.link), LINK_OK);
	CU_ASSERT_EQUAL_FATAL(link_client_open(endpoint, &client), LINK_OK);
}

static void
link_done(void)
{
	char command[128];

	link_client_close(client);
	link_server_close(svr.link);
	snprintf(command, sizeof command, "rm -rf %s", dir);
	CU_ASSERT_EQUAL(system(command), 0);
}

static bool
ask_in(const char *tran, const char *service, int prio, uint32_t timeout_ms, uint32_t flags)
{
	struct wire_call call = { .reqid = ++last_id, .priority = prio, .timeout_ms = timeout_ms, .flags = flags };
	struct wr w = { 0 };
	int rc;

	call.tx.gtrid_len = (uint8_t)strlen(tran);
	memcpy(call.tx.gtrid, tran, strlen(tran));
	snprintf(call.service, sizeof call.service, "%s", service);
	wire_call_encode(&w, &call);
	rc = link_client_send(client, w.p, w.len, NULL, in_ms(60000));
	wr_free(&w);
	return rc == LINK_OK;
}

static bool
ask(const char *service, int prio, uint32_t timeout_ms, uint32_t flags)
{
	return ask_in("", service, prio, timeout_ms, flags);
}

static bool	/* One message into the queue, as the server's loop does it. */
arrives(int ms)
{
	struct request *r = request_get();

	if (link_server_recv(svr.link, &r->m, in_ms(ms), -1) != LINK_OK) {
		request_put(r);
		return false;
	}
	CU_ASSERT_EQUAL(wire_call_decode(r->m.head, r->m.head_len, &r->call), 0);
	r->deadline_us = r->call.timeout_ms == 0 ? LINK_FOREVER : clock_mono_us() + (int64_t)r->call.timeout_ms * 1000;
	r->since_us = clock_mono_us();
	requests_add(r);
	return true;
}

static void
serves(const char *service)	/* NULL: nothing */
{
	struct request *r = requests_take();

	CU_ASSERT_EQUAL(r == NULL, service == NULL);
	if (r == NULL || service == NULL)
		return;
	CU_ASSERT_STRING_EQUAL(r->call.service, service);
	request_put(r);
}

static void
highest_priority_is_served_first(void)
{
	given_link();
	CU_ASSERT_TRUE(ask("low", 1, 0, 0) && ask("mid", 50, 0, 0) && ask("high", 100, 0, 0) && ask("mid2", 50, 0, 0));
	for (int i = 0; i < 4; i++)
		CU_ASSERT_TRUE(arrives(10000));
	serves("high");
	serves("mid");
	serves("mid2");
	serves("low");
	serves(NULL);
	link_done();
}

static void
cancelled_request_is_not_served(void)
{
	struct link_peer stranger = { .n = 8, .id = { 77 } };
	struct link_peer caller;
	struct request *r;

	given_link();
	CU_ASSERT_TRUE(ask("first", 50, 0, 0) && ask("second", 50, 0, 0) && ask("third", 50, 0, 0));
	for (int i = 0; i < 3; i++)
		CU_ASSERT_TRUE(arrives(10000));
	r = requests_take();
	CU_ASSERT_STRING_EQUAL(r->call.service, "first");
	caller = r->m.peer;
	requests_cancel(&stranger, last_id - 1);	/* not his */
	requests_cancel(&caller, last_id);
	requests_cancel(&caller, last_id);		/* gone by now */
	requests_cancel(&caller, r->call.reqid);	/* under way */
	request_put(r);
	serves("second");
	serves(NULL);
	link_done();
}

static void	/* Unless it wants no reply: nobody waits for that in the first place. */
request_whose_caller_waits_no_more_is_not_served(void)
{
	given_link();
	CU_ASSERT_TRUE(ask("late", 50, 1000, 0) && ask("in time", 50, 100000, 0) && ask("noreply", 50, 1000, TPNOREPLY));
	for (int i = 0; i < 3; i++)
		CU_ASSERT_TRUE(arrives(10000));
	clock_pass_us(2000000);
	serves("in time");
	serves("noreply");
	serves(NULL);
	CU_ASSERT_TRUE(ask_in("T", "left", 50, 0, 0) && ask("unasked", 50, 0, 0));
	CU_ASSERT_TRUE(arrives(10000));
	CU_ASSERT_TRUE(arrives(10000));
	link_client_close(client);
	clock_pass_us(LATE_US + 1000);
	serves("unasked");	/* who asked for it may have wanted no more; but not in a transaction that is left */
	serves(NULL);
	CU_ASSERT_EQUAL_FATAL(link_client_open(endpoint, &client), LINK_OK);
	link_done();
}

enum { MANY = LINK_PEER_MESSAGES + 4000 };

static void *
ask_many(void *arg)
{
	for (int i = 0; i < MANY; i++)
		CU_ASSERT_TRUE(ask("one of many", 50, 0, 0));
	return arg;
}

static void	/* What waits is no more than link would keep; a read of bytes may hold some more. */
no_more_is_taken_of_one_sender_than_may_wait(void)
{
	pthread_t sender;
	int n = 0, rest = 0;

	given_link();
	CU_ASSERT_EQUAL(pthread_create(&sender, NULL, ask_many, NULL), 0);
	while (n < LINK_PEER_MESSAGES && arrives(20000))
		n++;
	while (arrives(100))
		n++;
	CU_ASSERT_TRUE(n >= LINK_PEER_MESSAGES && n < LINK_PEER_MESSAGES + 2000);
	while (n + rest < MANY) {
		struct request *r = requests_take();

		if (r != NULL)
			request_put(r);
		rest += arrives(r == NULL ? 20000 : 0);
	}
	CU_ASSERT_EQUAL(n + rest, MANY);
	pthread_join(sender, NULL);
	while (requests_wait())
		serves("one of many");
	link_done();
}

static atomic_int served;

static void *
wait_for_requests(void *arg)
{
	struct work w = { .request = NULL };
	pthread_condattr_t attr;
	struct request *r;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w.wake, &attr);
	pthread_condattr_destroy(&attr);
	while ((r = requests_await(&w)) != NULL) {
		request_put(r);
		atomic_fetch_add(&served, 1);
	}
	pthread_cond_destroy(&w.wake);
	return arg;
}

static void	/* Three, of which two may stay; the end takes these too. */
thread_that_nobody_needs_ends_and_the_least_stay(void)
{
	pthread_t thread[3];

	given_link();
	requests_idle_us = 20000;
	for (int i = 0; i < 3; i++) {
		requests_thread_more(2);
		CU_ASSERT_EQUAL(pthread_create(&thread[i], NULL, wait_for_requests, NULL), 0);
	}
	for (int i = 0; i < 2000 && requests_threads() > 2; i++)
		usleep(10000);
	CU_ASSERT_EQUAL(requests_threads(), 2);
	for (int i = 0; i < 5; i++) {
		CU_ASSERT_TRUE(ask("any", 50, 0, 0));
		CU_ASSERT_TRUE(arrives(10000));
	}
	requests_settle();
	CU_ASSERT_EQUAL(atomic_load(&served), 5);
	CU_ASSERT_EQUAL(requests_threads(), 2);
	requests_close();
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	CU_ASSERT_EQUAL(requests_threads(), 0);
	link_done();
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(highest_priority_is_served_first),
		UNIT(cancelled_request_is_not_served),
		UNIT(request_whose_caller_waits_no_more_is_not_served),
		UNIT(no_more_is_taken_of_one_sender_than_may_wait),
		UNIT(thread_that_nobody_needs_ends_and_the_least_stay),
	};

	char log[] = "/tmp/test_requests_log.XXXXXX", prefix[64], command[128];
	int status;

	if (mkdtemp(log) == NULL)
		return 2;
	snprintf(prefix, sizeof prefix, "%s/ULOG", log);
	ulog_prefix(prefix);
	status = unit_run("libatmiq: requests", tests, UNIT_COUNT(tests));
	snprintf(command, sizeof command, "rm -rf %s", log);
	return system(command) == 0 ? status : 2;
}
