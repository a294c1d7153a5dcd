/*
 * A switch of the program's own: when its functions are called, and what becomes of what they say.
 *
 * A NOTE is text that travels backwards.
 */
#include "impl.h"
#include "tmtypes.h"
#include "unit.h"

static int inits, reinits, uninits, postsends, refuse;
static long told, room;

static int
note_init(char *ptr, long size)
{
	inits++;
	room = size;
	strcpy(ptr, "empty");
	return refuse ? -1 : 1;
}

static int
note_reinit(char *ptr, long size)
{
	(void)ptr;
	reinits++;
	room = size;
	return refuse ? -1 : 1;
}

static int
note_uninit(char *ptr, long size)
{
	(void)ptr;
	(void)size;
	uninits++;
	return 1;
}

static void
turn(char *p, long n)
{
	for (long i = 0; i < n / 2; i++) {
		char c = p[i];

		p[i] = p[n - 1 - i];
		p[n - 1 - i] = c;
	}
}

static long
note_presend(char *ptr, long len, long size)
{
	long n = (long)strnlen(ptr, (size_t)size);

	told = len;
	room = size;
	if (strcmp(ptr, "secret") == 0)
		return -1;
	if (strcmp(ptr, "endless") == 0)
		return size + 1;
	turn(ptr, n);
	return n;
}

static void
note_postsend(char *ptr, long len, long size)
{
	(void)size;
	postsends++;
	if (len >= 0)
		turn(ptr, len);
}

static long
note_postrecv(char *ptr, long len, long size)
{
	room = size;
	if (len == 3 && memcmp(ptr, "bad", 3) == 0)
		return -1;
	turn(ptr, len);
	ptr[len] = '\0';
	return len + 1;
}

struct tmtype_sw_t tm_typesw[] = {
	{ "NOTE", "", 64, note_init, note_reinit, note_uninit, note_presend, note_postsend, note_postrecv, NULL, NULL, NULL, NULL, NULL,
	    { NULL } },
	{ "NOTE", "plain", 32, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, { NULL } },
	{ "EIGHT888", "*", 8, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, { NULL } },
	{ "FML32", "*", 1024, _finit32, _freinit32, _funinit32, _fpresend32, _fpostsend32, _fpostrecv32, _fencdec32, _froute32,
	    _ffilter32, _fformat32, NULL, { NULL } },
	{ "", "", 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, { NULL } }
};

static void
forget_counts(void)
{
	inits = reinits = uninits = postsends = refuse = 0;
}

static void
a_buffer_of_ones_own_type_is_made_grown_and_ended(void)
{
	char *b, type[9] = "", subtype[17] = "";

	forget_counts();
	CU_ASSERT_PTR_NOT_NULL_FATAL(b = tpalloc("NOTE", NULL, 0));
	CU_ASSERT_STRING_EQUAL(b, "empty");
	CU_ASSERT_EQUAL(tptypes(b, type, subtype), 64);
	CU_ASSERT_STRING_EQUAL(type, "NOTE");
	CU_ASSERT_EQUAL(inits, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(b = tprealloc(b, 5000));
	CU_ASSERT_EQUAL(reinits, 1);
	CU_ASSERT_EQUAL(room, 5000);
	CU_ASSERT_STRING_EQUAL(b, "empty");
	tpfree(b);
	CU_ASSERT_EQUAL(uninits, 1);
	CU_ASSERT_EQUAL(inits, 1);
}

static void
the_switch_says_which_types_and_subtypes_there_are(void)
{
	char *b;

	CU_ASSERT_PTR_NOT_NULL(b = tpalloc("NOTE", "plain", 1));
	CU_ASSERT_EQUAL(tptypes(b, NULL, NULL), 32);
	tpfree(b);
	CU_ASSERT_PTR_NULL(tpalloc("NOTE", "other", 1));
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
	CU_ASSERT_PTR_NOT_NULL(b = tpalloc("EIGHT888", "anything", 1));
	tpfree(b);
	CU_ASSERT_PTR_NULL(tpalloc("EIGHT88", NULL, 1));
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
	CU_ASSERT_PTR_NOT_NULL(b = tpalloc("STRING", NULL, 0));	/* the system's types stay */
	CU_ASSERT_EQUAL(tptypes(b, NULL, NULL), 512);
	tpfree(b);
	CU_ASSERT_PTR_NULL(tpalloc("FML32", NULL, 0));		/* one that comes later, though the switch names it */
	CU_ASSERT_EQUAL(tperrno, TPENOENT);
	CU_ASSERT_PTR_EQUAL(_tmtypeswaddr(), tm_typesw);
}

static void
a_type_may_refuse(void)
{
	char *b;

	forget_counts();
	refuse = 1;
	CU_ASSERT_PTR_NULL(tpalloc("NOTE", NULL, 0));
	CU_ASSERT_EQUAL(tperrno, TPESYSTEM);
	CU_ASSERT_EQUAL(uninits, 0);
	refuse = 0;
	CU_ASSERT_PTR_NOT_NULL_FATAL(b = tpalloc("NOTE", NULL, 0));
	refuse = 1;
	CU_ASSERT_PTR_NULL(tprealloc(b, 100));
	CU_ASSERT_EQUAL(tperrno, TPESYSTEM);
	CU_ASSERT_EQUAL(uninits, 1);
	refuse = 0;
}

static void
what_presend_says_is_sent_and_postsend_takes_it_back(void)
{
	struct typed t;
	long n = 0;
	char *b;

	forget_counts();
	b = tpalloc("NOTE", NULL, 100);
	strcpy(b, "abc");
	CU_ASSERT_EQUAL(buffer_outgoing(b, 77, &t, &n), 0);
	CU_ASSERT_EQUAL(told, 77);		/* as the program gave it */
	CU_ASSERT_EQUAL(room, 100);
	CU_ASSERT_EQUAL(n, 3);
	CU_ASSERT_STRING_EQUAL(b, "cba");
	buffer_sent(b);
	CU_ASSERT_STRING_EQUAL(b, "abc");
	buffer_sent(b);				/* once is enough */
	CU_ASSERT_EQUAL(postsends, 1);
	CU_ASSERT_EQUAL(buffer_outgoing(b, 0, &t, &n), 0);
	tpfree(b);				/* as a server's answer ends */
	CU_ASSERT_EQUAL(postsends, 2);
	CU_ASSERT_EQUAL(uninits, 1);
}

static void
what_presend_refuses_is_not_sent(void)
{
	struct typed t;
	long n;
	char *b = tpalloc("NOTE", NULL, 100);

	strcpy(b, "secret");
	CU_ASSERT_EQUAL(buffer_outgoing(b, 0, &t, &n), TPESYSTEM);
	strcpy(b, "endless");
	CU_ASSERT_EQUAL(buffer_outgoing(b, 0, &t, &n), TPESYSTEM);
	CU_ASSERT_STRING_EQUAL(b, "endless");
	tpfree(b);
}

static void
what_comes_goes_through_postrecv(void)
{
	char *b = tpalloc("STRING", NULL, 0);
	long len = 0;

	forget_counts();
	CU_ASSERT_EQUAL(buffer_incoming(&b, "NOTE", "", "cba", 3, false, &len), 0);
	CU_ASSERT_STRING_EQUAL(b, "abc");
	CU_ASSERT_EQUAL(len, 4);		/* as postrecv() says */
	CU_ASSERT_EQUAL(inits, 1);		/* it was a STRING before */
	CU_ASSERT_EQUAL(buffer_incoming(&b, "NOTE", "", "fed", 3, false, &len), 0);
	CU_ASSERT_EQUAL(inits, 1);
	CU_ASSERT_EQUAL(buffer_incoming(&b, "NOTE", "", "bad", 3, false, &len), TPESYSTEM);
	CU_ASSERT_EQUAL(len, 0);
	CU_ASSERT_EQUAL(buffer_incoming(&b, "STRING", "", "text", 5, false, &len), 0);
	CU_ASSERT_EQUAL(uninits, 1);		/* it is a NOTE no more */
	CU_ASSERT_EQUAL(len, 5);
	tpfree(b);
	CU_ASSERT_EQUAL(uninits, 1);
}

static void
one_that_is_too_small_is_grown_first(void)
{
	char *b = tpalloc("NOTE", NULL, 0), big[1000];
	long len = 0;

	forget_counts();
	memset(big, 'x', sizeof big);
	CU_ASSERT_EQUAL(buffer_incoming(&b, "NOTE", "plain", big, sizeof big, false, &len), 0);
	CU_ASSERT_EQUAL(len, 1000);
	CU_ASSERT_EQUAL(reinits, 1);
	CU_ASSERT_EQUAL(uninits, 1);		/* another subtype is another type */
	tpfree(b);
}

static void
a_server_gets_a_buffer_of_the_type_that_came(void)
{
	char *b = NULL;
	long len = 0;

	forget_counts();
	CU_ASSERT_EQUAL(buffer_received(&b, "NOTE", "", "cba", 3, &len), 0);
	CU_ASSERT_STRING_EQUAL(b, "abc");
	CU_ASSERT_EQUAL(inits, 1);
	tpfree(b);
	CU_ASSERT_EQUAL(buffer_received(&b, "UNKNOWN", "sub", "cba", 3, &len), 0);	/* nobody's type is bytes */
	CU_ASSERT_EQUAL(memcmp(b, "cba", 3), 0);
	CU_ASSERT_EQUAL(len, 3);
	tpfree(b);
}

static void
an_exported_buffer_comes_back(void)
{
	char text[400], *b = tpalloc("NOTE", NULL, 0), *c = tpalloc("STRING", NULL, 0), type[9] = "";
	long n = sizeof text, len = 0;

	strcpy(b, "two boxes of nails");
	CU_ASSERT_EQUAL(tpexport(b, 0, text, &n, TPEX_STRING), 0);
	CU_ASSERT_STRING_EQUAL(b, "two boxes of nails");
	CU_ASSERT_EQUAL(tpimport(text, 0, &c, &len, TPEX_STRING), 0);
	CU_ASSERT_STRING_EQUAL(c, "two boxes of nails");
	CU_ASSERT_EQUAL(len, 19);
	tptypes(c, type, NULL);
	CU_ASSERT_STRING_EQUAL(type, "NOTE");
	tpfree(b);
	tpfree(c);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(a_buffer_of_ones_own_type_is_made_grown_and_ended),
		UNIT(the_switch_says_which_types_and_subtypes_there_are),
		UNIT(a_type_may_refuse),
		UNIT(what_presend_says_is_sent_and_postsend_takes_it_back),
		UNIT(what_presend_refuses_is_not_sent),
		UNIT(what_comes_goes_through_postrecv),
		UNIT(one_that_is_too_small_is_grown_first),
		UNIT(a_server_gets_a_buffer_of_the_type_that_came),
		UNIT(an_exported_buffer_comes_back),
	};

	setenv("ULOGPFX", "/dev/null/none", 1);	/* what is logged here is meant to fail */
	return unit_run("libatmiq: buffer types of one's own", tests, UNIT_COUNT(tests));
}
