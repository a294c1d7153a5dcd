/*
 * Typed buffers, conversions, error texts: what needs no application.
 */
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "impl.h"
#include "unit.h"

#define REFUSED(p, code) do { tperrno = 0; CU_ASSERT_PTR_NULL(p); CU_ASSERT_EQUAL(tperrno, code); } while (0)

static void
sizes_and_types_are_as_asked_for(void)
{
	char type[9], subtype[17], *b;

	memset(type, 'x', sizeof type);
	b = tpalloc("STRING", NULL, 0);
	CU_ASSERT_EQUAL(tptypes(b, type, subtype), 512);
	CU_ASSERT_STRING_EQUAL(type, "STRING");
	CU_ASSERT_STRING_EQUAL(subtype, "");
	CU_ASSERT_STRING_EQUAL(b, "");
	CU_ASSERT_PTR_NOT_NULL_FATAL(b = tprealloc(b, 2000));
	CU_ASSERT_EQUAL(tptypes(b, NULL, NULL), 2000);
	tpfree(b);
	b = tpalloc("CARRAY", "with a subtype of more than 16", 7);
	CU_ASSERT_EQUAL(tptypes(b, type, subtype), 7);
	CU_ASSERT_EQUAL(memcmp(subtype, "with a subtype o", 16), 0);	/* full length: no NUL */
	tpfree(b);
	b = tpalloc("TPINIT", NULL, TPINITNEED(4));
	CU_ASSERT_EQUAL(tptypes(b, NULL, NULL), (long)sizeof(TPINIT));
	CU_ASSERT_EQUAL(((TPINIT *)b)->flags, 0);
	tpfree(b);
	b = tpalloc(X_OCTET, "*", 3);
	CU_ASSERT_EQUAL(tptypes(b, type, NULL), 3);
	CU_ASSERT_STRING_EQUAL(type, "X_OCTET");
	tpfree(b);
}

static void
what_cannot_be_allocated_is_refused(void)
{
	REFUSED(tpalloc(NULL, NULL, 10), TPEINVAL);
	REFUSED(tpalloc("CARRAY", NULL, 0), TPEINVAL);
	REFUSED(tpalloc("STRING", NULL, -1), TPEINVAL);
	REFUSED(tpalloc("NOSUCH", NULL, 10), TPENOENT);
	REFUSED(tprealloc(NULL, 10), TPEINVAL);
#ifndef TEST_SANFLAGS	/* whose malloc stops the program instead */
	REFUSED(tpalloc("CARRAY", NULL, LONG_MAX / 2), TPEOS);
#endif
}

static void	/* Also one that must not be read: at the very start of a page, with none before it. */
foreign_pointer_is_recognised_without_being_read(void)
{
	long page = sysconf(_SC_PAGESIZE);
	char *two = mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	     local[4] = "abc";

	CU_ASSERT_TRUE_FATAL(two != MAP_FAILED);
	mprotect(two, (size_t)page, PROT_NONE);
	CU_ASSERT_EQUAL(tptypes(two + page, NULL, NULL), -1);
	CU_ASSERT_EQUAL(tperrno, TPEINVAL);
	CU_ASSERT_EQUAL(tptypes(local, NULL, NULL), -1);
	REFUSED(tprealloc(two + page, 10), TPEINVAL);
	tpfree(two + page);
	tpfree(local);
	tpfree(NULL);
	munmap(two, (size_t)page * 2);
}

static void	/* tpfree of the inbound buffer does nothing, and where it moves to is known. */
inbound_buffer_belongs_to_the_dispatcher(void)
{
	char *b = buffer_new("STRING", "", 512), *moved;

	buffer_inbound(b);
	tpfree(b);
	CU_ASSERT_EQUAL(tptypes(b, NULL, NULL), 512);
	moved = tprealloc(b, 1 << 20);
	CU_ASSERT_PTR_EQUAL(buffer_inbound_now(), moved);
	buffer_inbound(NULL);
	buffer_free(moved);
	CU_ASSERT_EQUAL(tptypes(moved, NULL, NULL), -1);
}

static void
what_goes_out_is_bounded_by_the_buffer(void)
{
	struct typed t;
	char *b = tpalloc("STRING", NULL, 512);
	long n;

	memset(b, 'a', 512);
	CU_ASSERT_EQUAL(buffer_outgoing(b, 0, &t, &n), TPEINVAL);	/* no end */
	b[511] = '\0';
	CU_ASSERT_EQUAL(buffer_outgoing(b, 3, &t, &n), 0);
	CU_ASSERT_EQUAL(n, 512);
	tpfree(b);
	b = tpalloc("CARRAY", NULL, 10);
	CU_ASSERT_EQUAL(buffer_outgoing(b, 11, &t, &n), TPEINVAL);
	CU_ASSERT_EQUAL(buffer_outgoing(b, 0, &t, &n), 0);
	CU_ASSERT_EQUAL(n, 0);
	CU_ASSERT_EQUAL(buffer_outgoing(NULL, 5, &t, &n), 0);
	CU_ASSERT_EQUAL(n, 0);
	tpfree(b);
	b = tpalloc("TPINIT", NULL, 0);
	CU_ASSERT_EQUAL(buffer_outgoing(b, 0, &t, &n), TPEINVAL);
	tpfree(b);
}

static void
types_differ_and_nochange_leaves_the_buffer(void)
{
	char *b = tpalloc("STRING", NULL, 512), *same = b, type[9] = "";

	strcpy(b, "kept");
	CU_ASSERT_EQUAL(buffer_incoming(&b, "CARRAY", "", "abc", 3, true, &(long){ 0 }), TPEOTYPE);
	CU_ASSERT_STRING_EQUAL(b, "kept");
	CU_ASSERT_EQUAL(buffer_incoming(&b, "STRING", "", "abc", 4, true, &(long){ 0 }), 0);
	CU_ASSERT_EQUAL(buffer_incoming(&b, "CARRAY", "sub", "xyz", 3, false, &(long){ 0 }), 0);
	CU_ASSERT_PTR_EQUAL(b, same);
	tptypes(b, type, NULL);
	CU_ASSERT_STRING_EQUAL(type, "CARRAY");
	CU_ASSERT_EQUAL(memcmp(b, "xyz", 3), 0);
	tpfree(b);
}

static void *
allocate_and_free(void *arg)
{
	char *kept[64] = { 0 };
	int i;

	(void)arg;
	for (i = 0; i < 20000; i++) {
		tpfree(kept[i % 64]);
		kept[i % 64] = tpalloc("CARRAY", NULL, 16 + i % 100);
	}
	for (i = 0; i < 64; i++)
		tpfree(kept[i]);
	return NULL;
}

static void
threads_allocate_at_the_same_time(void)
{
	pthread_t t[4];
	int i;

	for (i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, allocate_and_free, NULL);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void
exported_buffer_comes_back(void)
{
	char *b = tpalloc("STRING", NULL, 0), *c = tpalloc("CARRAY", NULL, 1), out[1000], type[9] = "";
	long n, len, flags;

	strcpy(b, "some text");
	for (flags = 0; flags <= TPEX_STRING; flags++) {
		n = 5;
		CU_ASSERT_EQUAL(tpexport(b, 0, out, &n, flags), -1);
		CU_ASSERT_EQUAL(tperrno, TPELIMIT);
		CU_ASSERT_EQUAL(tpexport(b, 0, out, &n, flags), 0);
		CU_ASSERT_EQUAL(tpimport(out, n, &c, &len, flags), 0);
		CU_ASSERT_STRING_EQUAL(c, "some text");
		CU_ASSERT_EQUAL(len, 10);
		tptypes(c, type, NULL);
		CU_ASSERT_STRING_EQUAL(type, "STRING");
		CU_ASSERT_EQUAL(tpimport(out, flags ? 0 : n - 1, &c, &len, 0), -1); /* cut off, or not of that form */
	}
	CU_ASSERT_EQUAL(tpimport("not base 64!", 0, &c, &len, TPEX_STRING), -1);
	tpfree(b);
	tpfree(c);
}

static void
identifiers_convert_to_text_and_back(void)
{
	CLIENTID c = { { 1, -1, 0x1234, 0 } }, c2;
	TPTRANID t = { { 5, 4, 3, 2, 1, 28 } }, t2;
	XID x = { 0, 28, 3, "any thirty-one bytes of an xid." }, x2;
	char text[TPCONVMAXSTR];

	CU_ASSERT_EQUAL(tpconvert(text, (char *)&c, TPTOSTRING | TPCONVCLTID), 0);
	CU_ASSERT_EQUAL(tpconvert(text, (char *)&c2, TPCONVCLTID), 0);
	CU_ASSERT_EQUAL(memcmp(&c, &c2, sizeof c), 0);
	CU_ASSERT_EQUAL(tpconvert(text, (char *)&t, TPTOSTRING | TPCONVTRANID), 0);
	CU_ASSERT_EQUAL(tpconvert(text, (char *)&t2, TPCONVTRANID), 0);
	CU_ASSERT_EQUAL(memcmp(&t, &t2, sizeof t), 0);
	CU_ASSERT_EQUAL(tpconvert(text, (char *)&x, TPTOSTRING | TPCONVXID), 0);
	CU_ASSERT_EQUAL(tpconvert(text, (char *)&x2, TPCONVXID), 0);
	CU_ASSERT_EQUAL(memcmp(&x, &x2, sizeof x), 0);
	CU_ASSERT_EQUAL(tpconvert("rubbish", (char *)&x2, TPCONVXID), -1);
	CU_ASSERT_EQUAL(tpconvert(text, (char *)&x, TPTOSTRING), -1);
	CU_ASSERT_EQUAL(tperrno, TPEINVAL);
}

static void
every_code_has_its_text(void)
{
	int i;

	for (i = TPMINVAL + 1; i < TPMAXVAL; i++) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(tpstrerror(i));
		CU_ASSERT_TRUE(strncmp(tpstrerror(i), "TP", 2) == 0 && strstr(tpstrerror(i), " - ") != NULL);
	}
	CU_ASSERT_PTR_NULL(tpstrerror(0));
	CU_ASSERT_PTR_NULL(tpstrerror(TPMAXVAL));
	CU_ASSERT_PTR_NULL(tpstrerror(-1));
	for (i = TPED_MINVAL + 1; i < TPED_MAXVAL; i++)
		CU_ASSERT_PTR_NOT_NULL(tpstrerrordetail(i, 0));
	CU_ASSERT_PTR_NULL(tpstrerrordetail(99, 0));
	CU_ASSERT_EQUAL(tperrordetail(0), 0);
	CU_ASSERT_EQUAL(tperrordetail(1), -1);
}

static void
environment_files_are_read(void)
{
	char path[] = "/tmp/atmiqenvXXXXXX", set[] = "ATMIQ_T0=zero";
	FILE *f = fdopen(mkstemp(path), "w");
	struct tm tm = { .tm_year = 126, .tm_mon = 10, .tm_mday = 30, .tm_isdst = -1 }, same = tm;

	fputs("# a remark\nATMIQ_T1=one\n  ATMIQ_T2 = x\nexport "
	      "ATMIQ_T3=three\n[part]\nATMIQ_T4=four\n[other]\nATMIQ_T4=five\n",
	    f);
	fclose(f);
	CU_ASSERT_EQUAL(tuxputenv(set), 0);
	CU_ASSERT_STRING_EQUAL(tuxgetenv("ATMIQ_T0"), "zero");
	CU_ASSERT_EQUAL(tuxreadenv(path, NULL), 0);
	CU_ASSERT_STRING_EQUAL(tuxgetenv("ATMIQ_T1"), "one");
	CU_ASSERT_STRING_EQUAL(tuxgetenv("ATMIQ_T3"), "three");
	CU_ASSERT_PTR_NULL(tuxgetenv("ATMIQ_T4"));
	CU_ASSERT_EQUAL(tuxreadenv(path, "part"), 0);
	CU_ASSERT_STRING_EQUAL(tuxgetenv("ATMIQ_T4"), "four");
	CU_ASSERT_NOT_EQUAL(tuxreadenv("/nonexistent", NULL), 0);
	CU_ASSERT_EQUAL(gp_mktime(&tm), (long)mktime(&same));
	unlink(path);
}

static void	/* What is not built yet fails with an error of its own, and leaves the caller running. */
unbuilt_calls_fail_honestly(void)
{
	long event;
	CLIENTID c = { { 0 } };

#define FAILS(call, code) do { tperrno = 0; CU_ASSERT_EQUAL(call, -1); CU_ASSERT_EQUAL(tperrno, code); } while (0)
	FAILS(tpconnect("SVC", NULL, 0, TPSENDONLY), TPENOENT);
	FAILS(tpconnect(NULL, NULL, 0, TPSENDONLY), TPEINVAL);
	FAILS(tpsend(1, NULL, 0, 0, &event), TPEBADDESC);
	FAILS(tpdiscon(1), TPEBADDESC);
	FAILS(tpnotify(&c, NULL, 0, 0), TPENOENT);
	FAILS(tpsubscribe("x", NULL, NULL, 0), TPENOENT);
	FAILS(tppost("x", NULL, 0, 0), TPENOENT);
	CU_ASSERT_EQUAL(tpchkunsol(), 0);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(sizes_and_types_are_as_asked_for),
		UNIT(what_cannot_be_allocated_is_refused),
		UNIT(foreign_pointer_is_recognised_without_being_read),
		UNIT(inbound_buffer_belongs_to_the_dispatcher),
		UNIT(what_goes_out_is_bounded_by_the_buffer),
		UNIT(types_differ_and_nochange_leaves_the_buffer),
		UNIT(threads_allocate_at_the_same_time),
		UNIT(exported_buffer_comes_back),
		UNIT(identifiers_convert_to_text_and_back),
		UNIT(every_code_has_its_text),
		UNIT(environment_files_are_read),
		UNIT(unbuilt_calls_fail_honestly),
	};

	setenv("ULOGPFX", "/dev/null/none", 1);	/* what is logged here is meant to fail */
	return unit_run("libatmiq: buffers and helpers", tests, UNIT_COUNT(tests));
}
