/*
 * story_ubb_dialect - configuration files as they are found in the field: loaded without a word, unloaded and loaded
 * again to the same TUXCONFIG, and one of them booted.
 */
#include "given.h"

/* @NAME@ stands for what differs from machine to machine. */
static const char bank[] =
    "##\n##  a bank; comments everywhere\n##\n"
    "*RESOURCES\nIPCKEY\t\t@KEY@\nUID             @UID@\nGID             @GID@\nPERM            0660\n"
    "MAXACCESSERS\t40\nMAXSERVERS\t35\nMAXSERVICES\t75\nMAXCONV         10\nMAXGTT          0x14\nMASTER\t\tSITE1\n"
    "SCANUNIT\t5\nSANITYSCAN\t12\nBBLQUERY\t180\nBLOCKTIME\t30\nDBBLWAIT  6\nNOTIFY DIPIN\nOPTIONS  NO_AA,LAN\n"
    "MODEL\t SHM   # a comment after a value\nLDBAL\tY\nSYSTEM_ACCESS FASTPATH,NO_OVERRIDE\nSECURITY NONE\n"
    "DOMAINID bank_app\n#\n"
    "*MACHINES\nDEFAULT:\n\t\tTUXCONFIG=\"@APPDIR@/tuxconfig\"\n# a comment inside DEFAULT\n"
    "\tTUXDIR=\"@TUXDIR@\" APPDIR = \"@APPDIR@\"\n\tENVFILE=\"@APPDIR@/ENVFILE\"\n\tULOGPFX=\"@APPDIR@/ULOG\"\n"
    "\tMAXWSCLIENTS=0\n\tTYPE=\"i386\"\n\n"
    "@NODE@\tLMID = SITE1\n\t\tTLOGDEVICE=\"@APPDIR@/TLOG\"\n\t# a comment in a record\n"
    "\t\tTLOGNAME=TLOG  TLOGSIZE = 10\n\t\tSPINCOUNT=2000\n\n"
    "*GROUPS\nDEFAULT:\tLMID=SITE1 \nQGRP1\tGRPNO=1 TMSNAME=TMS_QM TMSCOUNT=2\n"
    "\tOPENINFO=\"TUXEDO/QM:@APPDIR@/QUE:QSPACE\"\nBANKB1\tGRPNO=2\n"
    "\"BANKB2\" GRPNO=3   LMID = \"SITE1\" OPENINFO=NONE\nDEFAULT: LMID=SITE1\nGROUPWITHALONGNAME GRPNO=4\n"
    "*NETWORK\nSITE1\tNADDR=\"//@NODE@:15000\"  BRIDGE=\"/dev/tcp\" NLSADDR=\"//@NODE@:15001\"\n"
    "*SERVERS\nDEFAULT:\tCLOPT=\"-A\" RESTART=Y MAXGEN=5 REPLYQ=Y RCMD=\"\" GRACE=3600\n"
    "TMQUEUE  SRVGRP=QGRP1 SRVID=1  CLOPT=\"-s QSPACE:TMQUEUE -- -t 5 \"  GRACE=0 CONV=N MAXGEN=10 REPLYQ=N\n"
    "\"TMQFORWARD\" SRVGRP=\"QGRP1\" SRVID= 5 REPLYQ=N CLOPT=\"-A -- -i 2 -qUP -t60\" SEQUENCE=7\n"
    "DEFAULT: CLOPT=\"-A\" RESTART=Y MIN=1 MAX=2 RQADDR=\"TLR\" REPLYQ=Y \n"
    "\tRQPERM=0666 RPPERM=0660  MINDISPATCHTHREADS=0 MAXDISPATCHTHREADS=1\n"
    "server\tSRVGRP=BANKB1 SRVID=10\n\tCLOPT=\"-A -o out.txt -r -e err.txt --  -T 10\"\n\tMIN=2 MAX=3\n"
    "DEFAULT:\nserver\tSRVGRP=BANKB2 SRVID=20\nserver\tSRVGRP=GROUPWITHALONGNAME SRVID=21  SEQUENCE = 3\n"
    "*SERVICES\nDEFAULT:\tLOAD=50\tAUTOTRAN=N BUFTYPE=\"ALL\"\nUP\tPRIO=50 \n"
    "DEPOSIT ROUTING=ACCOUNT_ID  BUFTYPE=\"FML\" TRANTIME=30\nNOTHING\n"
    "*ROUTING\nACCOUNT_ID\tFIELD=ACCOUNT_ID\n\t\tBUFTYPE=\"FML\"\n"
    "\t\tRANGES=\"10000-49999:BANKB1,\n\t\t\t50000-79999:BANKB2,\n\t\t\t\\\"aaa\\\"-\\\"zz\\\":BANKB2,\n\t\t\t*:*\"\n";

static const char office[] =
    "*RESOURCES\nIPCKEY             @KEY@   # ( 32768 < IPCKEY < 262143 )\nMASTER             \"@NODE@\"\n"
    "DOMAINID           OFFICE_@KEY@\nMODEL              SHM\nLDBAL              N\n#\n"
    "MAXMACHINES        256 # min, default=256\nMAXGROUPS          100\nMAXSERVERS         54\nMAXSERVICES        400\n"
    "MAXACCESSERS       200\nMAXCONV 64\nSYSTEM_ACCESS FASTPATH,NO_OVERRIDE\nPERM  0660\n"
    "CMTRET   COMPLETE\nUSIGNAL SIGUSR2\n"
    "*MACHINES\n\"@NODE@\"  # comment\n        LMID=\"@NODE@\"\n        TUXDIR=\"@TUXDIR@\"\n"
    "        APPDIR=\"@APPDIR@\"\n"
    "        TUXCONFIG=\"@APPDIR@/tuxconfig\"\n        ULOGPFX=\"@APPDIR@/LOGS/TUXLOG\"\n"
    "        UID=@UID@  # has to be a number\n        GID=@GID@\n        TYPE=\"i386NT\"\n        NETLOAD=0\n"
    "        MAXWSCLIENTS=60\n        MAXACCESSERS=115\n"
    "*GROUPS\nDEFAULT:\tLMID=\"@NODE@\"\nBASE            GRPNO=1\n# data base\n\tOPENINFO=NONE\n"
    "APPSRV\n                LMID=\"@NODE@\"\n                GRPNO=99\n"
    "MONITOR\tLMID=\"@NODE@\" GRPNO=96 ENVFILE=\"\"\n"
    "*SERVERS\nDEFAULT: CLOPT=\"-A\" REPLYQ=Y MAXGEN=5 GRACE=60 RESTART=Y SYSTEM_ACCESS=FASTPATH\n"
    "OFFSRV        SRVGRP=APPSRV\n                SRVID=1\n                MIN=3\n                MAX=5\n"
    "                RQADDR=\"APPQ\"\n                REPLYQ=Y\n"
    "                CLOPT=\"-o \\\"./LOGS/stdout\\\" -e \\\"./LOGS/stderr\\\" -s @off.lst -- -D TEST -S OFFSRV\"\n"
    "QCK\tSRVGRP=APPSRV SRVID=50 MIN=1 MAX=1 RQADDR=\"QCKQ\" RCMD=\"/bin/true\"\n"
    " CLOPT=\"-s@qck.lst -s Sql:Sql -- -D x\"\n"
    "WSL SRVGRP=BASE SRVID=20 CLOPT=\"-A -- -n //@NODE@:7000 -z 0 -Z 0 -I 5 -T 60 -m 1 -M 3 -x 40 -c 5000\"\n"
    "*SERVICES\nDEFAULT:\n    LOAD=50     PRIO=50\n    SVCTIMEOUT=300\n    BUFTYPE=\"ALL\"\n\n"
    "Sql\tSRVGRP=APPSRV\n    LOAD=50     PRIO=50\n    SVCTIMEOUT=0\n    BUFTYPE=\"ALL\"\n"
    "GetPass SRVGRP=APPSRV LOAD=50 PRIO=50 SVCTIMEOUT=300 BUFTYPE=\"ALL\"\nLogon\nAnother\n*ROUTING\n";

static const char routed[] =
    "*RESOURCES\nIPCKEY @KEY@\nMASTER SITE1\nMODEL SHM\nMAXGTT 0100\nOPTIONS LAN\n"
    "*MACHINES\n\"@NODE@\" LMID=SITE1 TUXCONFIG=\"@APPDIR@/tuxconfig\" TUXDIR=\"@TUXDIR@\" "
    "APPDIR=\"@APPDIR@\" \n"
    "*GROUPS\nG1 LMID=SITE1 GRPNO=1 OPENINFO=\n"
    "\t\"Oracle_XA:Oracle_XA+Acc=P/scott/tiger+SqlNet=x+SesTm=60\" TMSNAME=\"tms_ora\" TMSCOUNT=2\n"
    "G2 LMID=SITE1 GRPNO=2 OPENINFO=\"TUXEDO/QM:C:\\\\app\\\\QUE;QSPACE\" TMSNAME=TMS_QM\n"
    "*NETGROUPS\nDEFAULTNET NETGRPNO=0 NETPRIO=100\n"
    "*NETWORK\nDEFAULT: NETGROUP=DEFAULTNET\nSITE1 NADDR=\"//@NODE@:1\" NLSADDR=\"//@NODE@:2\" "
    "MINENCRYPTBITS=0 MAXENCRYPTBITS=128\n"
    "*SERVERS\nDEFAULT: SRVGRP=\"G1\" RESTART=Y GRACE=0 MAXGEN=255\nDEFAULT: CONV=N\n"
    "\"s1\" SRVID=1 MIN=2 MAX=10 MINDISPATCHTHREADS=2 MAXDISPATCHTHREADS=10 THREADSTACKSIZE=0 "
    "CONCURR_STRATEGY=PER_REQUEST "
    "CLOPT=\"-s A -s B:b -p 1,10:2,20 -h -r -t -l d -n 5\"\n"
    "TMUSREVT SRVGRP=G1 SRVID=100 CLOPT=\"-A -- -f @APPDIR@/evt\"\nTMS SRVGRP=G1 SRVID=200\n"
    "*SERVICES\nA ROUTING=\"BRANCH\" AUTOTRAN=Y TRANTIME=20 BUFTYPE=\"FML32;VIEW:aud;STRING\"\nB\n"
    "*ROUTING\nBRANCH FIELD=BRANCH_ID FIELDTYPE=LONG RANGES=\"1-5:G1,MIN - -1:G1,6-MAX:*,*:G1\" BUFTYPE=\"FML32\"\n"
    "\"LETTERS\" FIELD=X RANGES=\"'a'-'m':G1,'n'-'z':G1,*:*\"\n BUFTYPE=\"VIEW:aud\"\n";

static void
write_as(const struct given *g, const char *name, const char *text)
{
	given_write(g, "raw", "%s", text);
	free(given_ok(g, NULL, "sed -e \"s#@NODE@#$(uname -n)#g; s#@APPDIR@#$APPDIR#g; s#@TUXDIR@#$TUXDIR#g; "
	    "s#@KEY@#%ld#g; s#@UID@#$(id -u)#g; s#@GID@#$(id -g)#g\" raw > %s", given_ipckey(g), name));
}

static void	/* and its unloaded form says the same */
loads(const struct given *g, const char *text)
{
	struct ran r;
	char *same;

	write_as(g, "field", text);
	free(given_ok(g, NULL, "tmloadcf -n field"));
	r = given_run(g, NULL, "tmloadcf -y field && cp tuxconfig first && tmunloadcf > again");
	if (r.status != 0 || *r.err != '\0')
		fprintf(stderr, "\n%s%s", r.out, r.err);
	CU_ASSERT_EQUAL(r.status, 0);
	CU_ASSERT_STRING_EQUAL(r.out, "");
	CU_ASSERT_STRING_EQUAL(r.err, "");
	ran_free(&r);
	same = given_ok(g, NULL, "tmloadcf -y again && cmp first tuxconfig");
	CU_ASSERT_STRING_EQUAL(same, "");
	free(same);
}

static void
files_of_the_field_are_loaded_without_a_word(void)
{
	struct given *g = given_system(&(struct given_conf){ .only_files = true });

	loads(g, bank);
	loads(g, office);
	loads(g, routed);
	given_done(g);
}

static void
lines_may_end_as_on_windows_and_the_last_not_at_all(void)
{
	struct given *g = given_system(&(struct given_conf){ .only_files = true });

	write_as(g, "field", office);
	free(given_ok(g, NULL, "sed -e 's/$/\\r/' field | head -c -2 > windows && tmloadcf -y field && "
	    "cp tuxconfig first && tmloadcf -y - < windows && cmp first tuxconfig"));
	given_done(g);
}

static void
the_bank_opens(void)
{
	struct given *g = given_system(&(struct given_conf){ .only_files = true });
	char *out;

	write_as(g, "field", bank);
	given_write(g, "ENVFILE", "# for servers\nBRANCH=uptown\n");
	given_write(g, "server.c", "#include <stdio.h>\n#include <ctype.h>\n#include \"atmi.h\"\n#include \"userlog.h\"\n"
	    "tpsvrinit(argc, argv) int argc; char **argv;\n"
	    "{ printf(\"%%d arguments\\n\", argc); userlog(\"at %%s\", tuxgetenv(\"BRANCH\")); return 0; }\n"
	    "UP(m) TPSVCINFO *m; { char *p; for (p = m->data; *p != '\\0'; p++) *p = toupper(*p);\n"
	    "tpreturn(TPSUCCESS, 0L, m->data, 0L, 0L); }\n"
	    "DEPOSIT(m) TPSVCINFO *m; { tpreturn(TPFAIL, 1L, NULL, 0L, 0L); }\n");
	free(given_ok(g, NULL, "CFLAGS=\"$CFLAGS -w\" buildserver -o server -s UP -s DEPOSIT -f server.c && "
	    "tmloadcf -y field && qmadmin $QMCONFIG <<!\ncrdl $QMCONFIG 0 500\nqspacecreate QSPACE %ld 200 20 5 5 200 Q_ERROR 'y' 16\n"
	    "qopen QSPACE\n"
	    "qcreate UP fifo none 2 2 100%% 0%% \"\"\nqcreate RPLYQ fifo none 2 30 80%% 0%% \"\"\n!\n"
	    "tmadmin <<!\necho\ncrdl -b 200 -z $APPDIR/TLOG\ncrlog -m SITE1\nq\n!\n", given_ipckey(g) + 1));
	out = given_ok(g, NULL, "tmboot -y");
	CU_ASSERT_TRUE(has(out, "exec server -A -o out.txt -r -e err.txt --  -T 10 :\n\tprocess id="));
	CU_ASSERT_TRUE(has(out, "9 processes started."));
	CU_ASSERT_FALSE(has(out, "Failed"));
	free(out);
	out = given_ok(g, NULL, "echo psr | tmadmin -r 2>/dev/null");
	CU_ASSERT_TRUE(has(out, "\nserver         TLR         BANKB1        10 "));
	CU_ASSERT_TRUE(has(out, "\nserver         TLR         BANKB1        11 "));
	CU_ASSERT_TRUE(has(out, "\nserver         00004.00021 GROUPWI+      21 "));
	free(out);
	put("UP", "deposit");			/* no reply queue: the answer is dropped */
	CU_ASSERT_TRUE(given_logged(g, "at uptown"));
	out = given_ok(g, NULL, "echo y | tmshutdown -c");
	CU_ASSERT_TRUE(has(out, "\tServer Id = 10 Group Id = BANKB1 Machine = SITE1:\tshutdown succeeded\n"));
	CU_ASSERT_TRUE(has(out, "9 processes stopped."));
	free(out);
	out = given_read(g, "out.txt");
	CU_ASSERT_STRING_EQUAL(out == NULL ? "" : out, "3 arguments\n3 arguments\n");
	free(out);
	tpterm();
	given_done(g);
}

int
main(void)
{
	static const struct unit_test tests[] = {
		UNIT(files_of_the_field_are_loaded_without_a_word),
		UNIT(lines_may_end_as_on_windows_and_the_last_not_at_all), UNIT(the_bank_opens),
	};

	return unit_run("story: configuration files of the field", tests, UNIT_COUNT(tests));
}
