/*
 * given_doer - a service that does what its request says, so that a story can be read where it stands.
 *
 * A request is a text of steps that are separated by ; and the answer is a text with a word for each step: 0 or its tperrno
 * (a diagnostic as -11), "text" that was taken, a number that was asked for.
 *
 *     put SPACE QUEUE TEXT     take SPACE QUEUE     call SERVICE (STEPS)     acall SERVICE (STEPS)     reply
 *     callout SERVICE (STEPS)  with TPNOTRAN        cancel                   begin SECONDS  commit  abort
 *     tran  1: TPTRAN is on    lev                  txopen  txbegin  txcommit  txrollback  txinfo  txclose
 *     pause MS                 wait FILE            until it is there        touch FILE
 *     dieonce FILE             _exit, unless FILE is there already    failonce FILE   tpreturn(TPFAIL) likewise
 *     note WORD                a line of the file "notes"             prio  what tpgprio() says
 *     sendoff SERVICE          tpunadvertise()
 * and at the end one of
 *     ok  fail  exit           tpreturn(TPSUCCESS, TPFAIL, TPEXIT); code 7; without any of these: ok
 *     forward SERVICE (STEPS)  none: return without tpreturn()  die: _exit  bad: data that is no typed buffer
 */
#ifndef GIVEN_DOER_H
#define GIVEN_DOER_H

static const char given_doer[] =
    "#include <atmi.h>\n#include <tx.h>\n#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    "#include <unistd.h>\n"
    "static char said[4000];\n"
    "static void say(const char *fmt, long n) { size_t at = strlen(said); snprintf(said + at, sizeof said - at, at ? \" \" : \"\");\n"
    "  at = strlen(said); snprintf(said + at, sizeof said - at, fmt, n); }\n"
    "static long did(int rc) { return rc == -1 ? tperrno : 0; }\n"
    "static char *text_of(const char *s) { char *b = tpalloc(\"STRING\", NULL, (long)strlen(s) + 1000); strcpy(b, s); return b; }\n"
    "static void put(char *space, char *queue, char *text) { TPQCTL c; char *b = text_of(text); long e;\n"
    "  memset(&c, 0, sizeof c); e = did(tpenqueue(space, queue, &c, b, 0, 0));\n"
    "  say(\"%ld\", e == TPEDIAGNOSTIC ? c.diagnostic : e); tpfree(b); }\n"
    "static void take(char *space, char *queue) { TPQCTL c; char *b = text_of(\"\"); long e, n = 0;\n"
    "  memset(&c, 0, sizeof c); e = did(tpdequeue(space, queue, &c, &b, &n, 0));\n"
    "  if (e != 0) say(\"%ld\", e == TPEDIAGNOSTIC ? c.diagnostic : e);\n"
    "  else { size_t at = strlen(said); snprintf(said + at, sizeof said - at, \"%s%s\", at ? \" \" : \"\", b); }\n"
    "  tpfree(b); }\n"
    /* One step: its words, and what stands in its parentheses. */
    "static void step(TPSVCINFO *m, char *s) { char w[4][200] = { \"\", \"\", \"\", \"\" }, *in = strchr(s, '('), *b, *end; long n = 0; int i;\n"
    "  static int cd; TXINFO info;\n"
    "  if (in != NULL) { *in++ = '\\0'; if ((end = strrchr(in, ')')) != NULL) *end = '\\0'; }\n"
    "  i = sscanf(s, \"%199s %199s %199s %199[^;]\", w[0], w[1], w[2], w[3]);\n"
    "  if (i < 1) return;\n"
    "#define IS(name) (strcmp(w[0], name) == 0)\n"
    "  if (IS(\"put\")) put(w[1], w[2], w[3]);\n"
    "  else if (IS(\"take\")) take(w[1], w[2]);\n"
    "  else if (IS(\"call\") || IS(\"callout\")) { b = text_of(in ? in : \"\");\n"
    "    say(\"%ld\", did(tpcall(w[1], b, 0, &b, &n, IS(\"callout\") ? TPNOTRAN : 0))); tpfree(b); }\n"
    "  else if (IS(\"acall\")) { b = text_of(in ? in : \"\"); cd = tpacall(w[1], b, 0, 0); say(\"%ld\", did(cd)); tpfree(b); }\n"
    "  else if (IS(\"reply\")) { b = text_of(\"\"); say(\"%ld\", did(tpgetrply(&cd, &b, &n, 0))); tpfree(b); }\n"
    "  else if (IS(\"cancel\")) say(\"%ld\", did(tpcancel(cd)));\n"
    "  else if (IS(\"begin\")) say(\"%ld\", did(tpbegin((unsigned long)atol(w[1]), 0)));\n"
    "  else if (IS(\"commit\")) say(\"%ld\", did(tpcommit(0)));\n"
    "  else if (IS(\"abort\")) say(\"%ld\", did(tpabort(0)));\n"
    "  else if (IS(\"tran\")) say(\"%ld\", (m->flags & TPTRAN) != 0);\n"
    "  else if (IS(\"lev\")) say(\"%ld\", tpgetlev());\n"
    "  else if (IS(\"txopen\")) say(\"%ld\", tx_open());\n"
    "  else if (IS(\"txbegin\")) say(\"%ld\", tx_begin());\n"
    "  else if (IS(\"txcommit\")) say(\"%ld\", tx_commit());\n"
    "  else if (IS(\"txrollback\")) say(\"%ld\", tx_rollback());\n"
    "  else if (IS(\"txinfo\")) say(\"%ld\", tx_info(&info));\n"
    "  else if (IS(\"txclose\")) say(\"%ld\", tx_close());\n"
    "  else if (IS(\"pause\")) usleep((unsigned)atol(w[1]) * 1000);\n"
    "  else if (IS(\"wait\")) while (access(w[1], F_OK) != 0) usleep(2000);\n"
    "  else if (IS(\"touch\")) close(open(w[1], O_CREAT | O_WRONLY, 0600));\n"
    "  else if (IS(\"dieonce\")) { if (access(w[1], F_OK) != 0) { close(open(w[1], O_CREAT | O_WRONLY, 0600)); _exit(3); } }\n"
    "  else if (IS(\"failonce\")) { if (access(w[1], F_OK) != 0) { close(open(w[1], O_CREAT | O_WRONLY, 0600));\n"
    "    tpreturn(TPFAIL, 7, text_of(said), 0, 0); } }\n"
    "  else if (IS(\"note\")) { int fd = open(\"notes\", O_CREAT | O_APPEND | O_WRONLY, 0600); dprintf(fd, \"%s\\n\", w[1]); close(fd); }\n"
    "  else if (IS(\"prio\")) say(\"%ld\", tpgprio());\n"
    "  else if (IS(\"sendoff\")) say(\"%ld\", did(tpunadvertise(w[1])));\n"
    "  else if (IS(\"ok\")) tpreturn(TPSUCCESS, 7, text_of(said), 0, 0);\n"
    "  else if (IS(\"fail\")) tpreturn(TPFAIL, 7, text_of(said), 0, 0);\n"
    "  else if (IS(\"exit\")) tpreturn(TPEXIT, 7, text_of(said), 0, 0);\n"
    "  else if (IS(\"bad\")) tpreturn(TPSUCCESS, 7, said, 0, 0);\n"
    "  else if (IS(\"forward\")) tpforward(w[1], text_of(in ? in : \"\"), 0, 0);\n"
    "  else if (IS(\"die\")) _exit(3);\n"
    "  else say(\"what?\", 0); }\n"
    "void DO(TPSVCINFO *m) { static char steps[4000]; char *p, *from; int depth = 0, last = 0;\n"
    "  snprintf(steps, sizeof steps, \"%s\", m->data != NULL ? m->data : \"\"); said[0] = '\\0';\n"
    "  for (p = from = steps; !last; p++) {\n"
    "    depth += (*p == '(') - (*p == ')');\n"
    "    if (*p != '\\0' && (*p != ';' || depth > 0)) continue;\n"
    "    last = *p == '\\0'; *p = '\\0'; from += strspn(from, \" \");\n"
    "    if (strcmp(from, \"none\") == 0) return;\n"
    "    step(m, from); from = p + 1; }\n"
    "  tpreturn(TPSUCCESS, 7, text_of(said), 0, 0); }\n";

#endif
