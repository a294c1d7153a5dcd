/*
 * given_serve_service - the service of given_serve: it does what its request says.
 *
 *     Pproducer Sseq KINDpercent      the KIND is done with that probability; else the request is served well
 *
 *     .   served well                           n   served well, with nothing on SIDE
 *     s a e k   dies: SIGSEGV, abort(), _exit(), kill -9; in capitals after its message was put on SIDE (E: exit())
 *     h H sleeps longer than its transaction may take, before or after it puts      l L longer than SVCTIMEOUT, which kills it
 *     f F tpreturn(TPFAIL) without and with data      x X tpreturn(TPEXIT), likewise
 *     r   returns without tpreturn()            w   served well, but the service is withdrawn for a while
 */
#ifndef GIVEN_SERVE_SERVICE_H
#define GIVEN_SERVE_SERVICE_H

static const char serve_service[] =
    "#include <atmi.h>\n#include <ctype.h>\n#include <fcntl.h>\n#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    "#include <string.h>\n#include <sys/resource.h>\n#include <time.h>\n#include <unistd.h>\n"
    "static char away[20];\nstatic struct timespec away_until;\n"
    "int tpsvrinit(int argc, char **argv) { struct rlimit none = { 0, 0 };\n"
    "  (void)argc; (void)argv; srand((unsigned)getpid()); return setrlimit(RLIMIT_CORE, &none); }\n"
    "void SERVE(TPSVCINFO *m);\n"
    "static void come_back(int now) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);\n"
    "  if (away[0] != 0 && (now || t.tv_sec > away_until.tv_sec) && tpadvertise(away, SERVE) == 0) away[0] = 0; }\n"
    "static void go_away(const char *service) { if (away[0] != 0) return;\n"
    "  clock_gettime(CLOCK_MONOTONIC, &away_until); snprintf(away, sizeof away, \"%.19s\", service);\n"
    "  if (tpunadvertise(away) == -1) away[0] = 0; }\n"
    "static void note(int p, int s) { static int fd = -1; struct timespec t; char line[80]; int n;\n"
    "  if (fd < 0) fd = open(\"attempts\", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);\n"
    "  clock_gettime(CLOCK_REALTIME, &t);\n"
    "  n = snprintf(line, sizeof line, \"%d %d %lld\\n\", p, s, t.tv_sec * 1000000LL + t.tv_nsec / 1000);\n"
    "  if (write(fd, line, (size_t)n) != n) _exit(9); }\n"
    "static int put(const char *text, int s) { char *b = tpalloc(\"STRING\", NULL, 64); int rc; TPQCTL c; memset(&c, 0, sizeof c);\n"
    "  snprintf(b, 64, \"%.60s\", text); rc = tpenqueue(s % 2 ? \"QSPACE2\" : \"QSPACE\", \"SIDE\", &c, b, 0, 0); tpfree(b); return rc; }\n"
    "static void die(int kind) {\n"
    "  switch (kind) {\n"
    "  case 's': signal(SIGSEGV, SIG_DFL); kill(getpid(), SIGSEGV); pause(); break;\n"
    "  case 'a': signal(SIGABRT, SIG_DFL); abort();\n"
    "  case 'e': _exit(3);\n"
    "  case 'E': exit(0);\n"
    "  case 'k': kill(getpid(), SIGKILL); pause(); break;\n"
    "  case 'h': sleep(5); break;\n"
    "  case 'l': sleep(300); _exit(9); } }\n"
    "void SERVE(TPSVCINFO *m) { int p = -1, s = -1, percent = 0; char kind = '.';\n"
    "  sscanf(m->data, \"P%d S%d %c%d\", &p, &s, &kind, &percent);\n"
    "  note(p, s); come_back(0);\n"
    "  if (rand() % 100 >= percent && kind != 'n') kind = '.';\n"
    "  if (strchr(\"saekhl\", kind)) die(kind);\n"
    "  if (kind != 'n' && put(m->data, s) == -1) tpreturn(TPFAIL, tperrno, NULL, 0, 0);\n"
    "  if (strchr(\"SAEKHL\", kind)) die(kind == 'E' ? kind : tolower(kind));\n"
    "  switch (kind) {\n"
    "  case 'f': tpreturn(TPFAIL, 8, NULL, 0, 0); break;\n"
    "  case 'F': tpreturn(TPFAIL, 8, m->data, 0, 0); break;\n"
    "  case 'x': tpreturn(TPEXIT, 9, NULL, 0, 0); break;\n"
    "  case 'X': tpreturn(TPEXIT, 9, m->data, 0, 0); break;\n"
    "  case 'r': return;\n"
    "  case 'w': go_away(m->name); }\n"
    "  tpreturn(TPSUCCESS, s, m->data, 0, 0); }\n"
    "void PULSE(TPSVCINFO *m) { (void)m; come_back(1); tpreturn(TPSUCCESS, 0, NULL, 0, 0); }\n";

#endif
