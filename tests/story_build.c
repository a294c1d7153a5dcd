/*
 * story_build - old C, today's C and C++ compile and link: by the compiler's own command, by buildserver and by
 * buildclient.
 */
#include "given.h"

static void
write_sources(const struct given *g)
{
	/* a service without a return type, with its parameter declared the old way */
	given_write(g, "knr.c",
	    "#include <stdio.h>\n#include <ctype.h>\n#include <atmi.h>\n#include <userlog.h>\n\n"
	    "tpsvrinit(argc, argv)\nint argc;\nchar **argv;\n{\n\tuserlog(\"Welcome to %%s\", "
	    "argv[0]);\n\treturn(0);\n}\n\n"
	    "STRING(msg)\nTPSVCINFO *msg;\n{\n\tint i;\n\n\tfor (i = 0; i < msg->len; i++)\n"
	    "\t\tmsg->data[i] = toupper(msg->data[i]);\n\ttpreturn(TPSUCCESS, 0, msg->data, 0L, 0);\n}\n\n"
	    "OTHER(msg)\nTPSVCINFO *msg;\n{\n\ttpforward(\"STRING\", msg->data, msg->len, 0);\n}\n");
	given_write(g, "client.c",
	    "#include <stdio.h>\n#include \"Uunix.h\"\n#include \"atmi.h\"\n\nextern int tperrno;\n\n"
	    "main(argc, argv)\nint argc;\nchar *argv[];\n{\n\tchar *buf;\n\tlong len;\n\tTPQCTL qctl;\n\n"
	    "\tif (tpinit((TPINIT *)NULL) == -1) {\n\t\tuserlog(\"tpinit failed %%d %%d\", tperrno, "
	    "Uunixerr);\n\t\texit(1);\n\t}\n"
	    "\tbuf = tpalloc(\"STRING\", NULL, 100);\n\tstrcpy(buf, \"a\");\n\tqctl.flags = TPQREPLYQ;\n"
	    "\t(void)tpenqueue(\"QSPACE\", \"STRING\", &qctl, buf, 0, 0);\n\ttpterm();\n\tperror(NULL);\n\treturn "
	    "0;\n}\n");
	given_write(g, "all.c",
	    "#include <atmi.h>\n#include <userlog.h>\n#include <tx.h>\n#include <xa.h>\n#include <xatmi.h>\n"
	    "#include <Uunix.h>\n#include <Usignal.h>\n#include <tmenv.h>\n#include <mainexit.h>\n#include <stdio.h>\n"
	    "#ifdef __cplusplus\nextern \"C\"\n#endif\nvoid _TMDLLENTRY SVC _((TPSVCINFO *m));\n"
	    "void _TMDLLENTRY SVC(TPSVCINFO *m) { tpreturn(TPSUCCESS, 0, m->data, m->len, 0); }\n"
	    "static void unsol(char *d, long l, long f) { (void)d; (void)l; (void)f; }\n"
	    "int use(void) {\n\tTPEVCTL e; TPTRANID t; TXINFO i; CLIENTID c; TPQCTL q = {0};\n\tTPCONTEXT_T "
	    "ctx;\n\tchar *b = 0; long n = 0; "
	    "int cd = 0;\n"
	    "\tif (tpsetunsol(unsol) == TPUNSOLERR) tperrno = TPEINVAL;\n\ttpurcode = 1;\n"
	    "\ttpgetctxt(&ctx, 0); tpsuspend(&t, 0); tx_info(&i); tpnotify(&c, b, 0, 0);\n"
	    "\ttpsubscribe((char *)\"x\", b, &e, 0); tpgetrply(&cd, &b, &n, TPGETANY);\n"
	    "\ttpdequeue((char *)\"q\", (char *)\"q\", &q, &b, &n, TPNOFLAGS); tpopen(); tpclose();\n"
	    "\treturn (int)TPINITNEED(100) + (int)sizeof(TPINIT) + tmnull_switch.version;\n}\n");
	given_write(g, "main.c", "int main(void) { return 0; }\n");
}

static struct given *
given_sources(void)
{
	struct given *g = given_directory();

	write_sources(g);
	return g;
}

static void
old_and_new_sources_compile_unchanged(void)
{
	struct given *g = given_sources();

	free(given_ok(g, NULL, "cc -I$TUXDIR/include -c knr.c"));
	free(given_ok(g, NULL, "cc -std=gnu89 -I$TUXDIR/include -c knr.c"));
	free(given_ok(g, NULL, "cc -I$TUXDIR/include -c client.c"));
	free(given_ok(g, NULL, "cc -std=gnu89 -I$TUXDIR/include -c client.c"));
	free(given_ok(g, NULL, "cc -std=gnu89 -Wall -Werror -I$TUXDIR/include -c all.c"));
	free(given_ok(g, NULL, "cc -std=c11 -Wall -Wextra -Werror -I$TUXDIR/include -c all.c"));
	free(given_ok(
	    g, NULL, "c++ -Wall -Wextra -Wno-missing-field-initializers -Werror -x c++ -I$TUXDIR/include -c all.c"));
	free(given_ok(
	    g, NULL, "c++ -std=c++98 -Wall -Wno-missing-field-initializers -Werror -x c++ -I$TUXDIR/include -c all.c"));
	given_done(g);
}

static void	/* Everything that qsample-like programs include and call is found behind the headers they name. */
structures_have_the_classic_layout(void)
{
	struct given *g = given_sources();

	given_write(g, "layout.c",
	    "#include <atmi.h>\n#include <stddef.h>\n#define IS(e) _Static_assert(e, #e)\n"
	    "IS(sizeof(TPQCTL) == 424); IS(offsetof(TPQCTL, diagnostic) == 24); IS(offsetof(TPQCTL, msgid) == 32);\n"
	    "IS(offsetof(TPQCTL, replyqueue) == 96); IS(offsetof(TPQCTL, cltid) == 352); IS(offsetof(TPQCTL, exp_time) "
	    "== 416);\n"
	    "IS(sizeof(CLIENTID) == 32); IS(sizeof(TPTRANID) == 48); IS(offsetof(TPINIT, flags) == 128);\n"
	    "IS(TPQGETBYMSGID == 0x40008 && TPQGETBYCORRID == 0x80800 && TPFAIL == 1 && TPSUCCESS == 2 && TPGOTSIG == "
	    "15);\n");
	free(given_ok(g, NULL, "cc -I$TUXDIR/include -c layout.c"));
	given_done(g);
}

static bool
fails(const struct given *g, const char *command)
{
	struct ran r = given_run(g, NULL, "%s", command);
	bool yes = r.status == 1 && r.err[0] != '\0';

	if (!yes)
		printf("\n    %s: exit %d, stderr \"%s\"", command, r.status, r.err);
	ran_free(&r);
	return yes;
}

static void
buildserver_takes_every_form_of_its_options(void)
{
	struct given *g = given_sources();
	char *out;

	given_write(g, "list", "STRING,ALIAS:STRING OTHER\n# a remark, with words\n:STRING\n");
	out = given_ok(g, NULL, "buildserver -v -o server -s STRING -f knr.c");
	CU_ASSERT_TRUE(has(out, "cc ") && has(out, "-o server") && has(out, "knr.c") && has(out, "-latmiq"));
	free(out);
	free(given_ok(g, NULL, "cc -I$TUXDIR/include -c knr.c"));
	free(given_ok(g, NULL,
	    "buildserver -o s2 -sSTRING -s A,B:STRING -s :OTHER -f \"-g knr.o\" -f '-Wl,--as-needed' -l \"-ltux "
	    "-lbuft\" "
	    "-l -ltmib"));
	free(given_ok(g, NULL, "buildserver -o s3 -s @list -r TUXEDO/QM -t -f knr.o -n 10"));
	free(given_ok(g, NULL, "buildserver -o s4 -g TUXEDO/QM -k -s OTHER -f knr.o"));
	CU_ASSERT_TRUE(given_exists(g, "s4.c"));
	free(given_ok(g, NULL, "buildserver -s STRING -f knr.o"));
	CU_ASSERT_TRUE(given_exists(g, "SERVER"));
	free(given_ok(g, NULL, "CC=gcc CFLAGS='-g -O2' buildserver -o s5 -v -s STRING -f knr.c | grep '^gcc -g -O2 '"));
	free(given_ok(g, NULL, "unset TUXDIR LD_LIBRARY_PATH; buildserver -o s6 -s STRING -f knr.o"));
	free(given_ok(g, NULL, "c++ -x c++ -I$TUXDIR/include -c all.c && CC=c++ buildserver -o s7 -s SVC -f all.o"));
	CU_ASSERT_TRUE(fails(g, "buildserver -Z"));
	CU_ASSERT_TRUE(fails(g, "buildserver -o s8 -s STRING -f knr.o stray"));
	CU_ASSERT_TRUE(fails(g, "buildserver -o s8 -r NOSUCH -f knr.o"));
	CU_ASSERT_TRUE(fails(g, "buildserver -o s8 -s @nolist -f knr.o"));
	CU_ASSERT_TRUE(fails(g, "buildserver -o s8 -s NOTTHERE -f knr.o"));
	CU_ASSERT_TRUE(fails(g, "buildserver -o s8 -s 'A B' -f knr.o"));
	CU_ASSERT_FALSE(given_exists(g, "s8"));
	given_done(g);
}

static void
buildclient_takes_every_form_of_its_options(void)
{
	struct given *g = given_sources();

	free(given_ok(g, NULL, "buildclient -o client -f client.c"));
	free(given_ok(g, NULL,
	    "cc -I$TUXDIR/include -c client.c && buildclient -v -o c2 -f client.o -l '-lm -ltux' | grep 'client.o'"));
	free(given_ok(g, NULL, "buildclient -w -f client.o && test -x a.out"));
	free(given_ok(g, NULL, "buildclient -r TUXEDO/QM -o c3 -f client.o"));
	free(given_ok(g, NULL, "buildclient -o c4 -f 'all.c main.c'"));
	CU_ASSERT_TRUE(fails(g, "buildclient -w -r TUXEDO/QM -f client.o"));
	CU_ASSERT_TRUE(fails(g, "buildclient -r NOSUCH -f client.o"));
	CU_ASSERT_TRUE(fails(g, "buildclient -Q"));
	CU_ASSERT_TRUE(fails(g, "buildclient -o c5 -f nothere.c"));
	given_done(g);
}

static void
link_lines_of_old_makefiles_find_their_libraries(void)
{
	struct given *g = given_sources();

	free(given_ok(g, NULL, "cc -I$TUXDIR/include -c client.c && "
	    "cc -o c6 client.o -L$TUXDIR/lib -ltux -lbuft -ltmib -lqm -lfml -lfml32 -lengine"));
	free(given_ok(g, NULL, "cc -o c7 client.o -L$TUXDIR/lib -lwsc -lbuft -lengine -ldl -lm -lpthread"));
	free(given_ok(g, NULL, "buildclient -o c8 -f client.o -f \"-L$TUXDIR/lib -ltmib -lqm\""));
	given_done(g);
}

static void	/* Any header first, any twice; old and new dialects, C++ too. */
headers_go_in_any_order(void)
{
	static const char *const compilers[] = { "cc -std=gnu89", "cc -std=c99 -pedantic", "c++ -x c++ -std=c++17 -pedantic" };
	struct given *g = given_sources();

	given_write(g, "order.sh", "H='atmi.h userlog.h tx.h xa.h xatmi.h Uunix.h Usignal.h tmenv.h mainexit.h'\n"
	    "for a in $H; do (echo \"#include <$a>\"; for b in $H; do echo \"#include <$b>\"; done; echo 'int x;') > order.c\n"
	    "$1 -Wall -Werror -I$TUXDIR/include -fsyntax-only order.c || exit 1\ndone\n");
	for (size_t i = 0; i < sizeof compilers / sizeof *compilers; i++)
		free(given_ok(g, NULL, "sh ./order.sh '%s'", compilers[i]));
	given_done(g);
}

static void	/* A binding names them all; one that is missing stops it from loading. */
every_word_of_the_headers_is_in_the_library(void)
{
	struct given *g = given_sources();
	char *out = given_ok(g, NULL,
	    "for f in $(cat $TUXDIR/include/atmi.h $TUXDIR/include/tx.h $TUXDIR/include/userlog.h | "
	    "grep -oE '\\b(tp|tx_|tux|gp_|user)[a-z0-9_]+\\(' | tr -d '(' | sort -u); do "
	    "nm -D --defined-only $TUXDIR/lib/libatmiq.so.1 | grep -q \" $f$\" || echo missing $f; done");

	CU_ASSERT_STRING_EQUAL(out, "");
	free(out);
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(old_and_new_sources_compile_unchanged), UNIT(structures_have_the_classic_layout),
		UNIT(buildserver_takes_every_form_of_its_options), UNIT(buildclient_takes_every_form_of_its_options),
		UNIT(link_lines_of_old_makefiles_find_their_libraries), UNIT(headers_go_in_any_order),
		UNIT(every_word_of_the_headers_is_in_the_library),
	};

	return unit_run("story: building programs", tests, UNIT_COUNT(tests));
}
