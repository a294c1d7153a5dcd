/*
 * unbuilt - calls that exist so that every program and binding links, and fail honestly: conversations, unsolicited
 * messages, the event broker.  Each logs once in a process that the program tried it.
 */
#include "impl.h"
#include "ulog.h"

#define NOT_HERE(code) do { \
	static int said; \
	if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED)) \
		ulog("LIBTUX_CAT:5050: WARN: %s is not available in this version, it always fails", __func__); \
	return fail(code); \
} while (0)

/* --- conversations: no service is a conversational one --- */

int
tpconnect(char *svc, char *data, long len, long flags)
{
	(void)data, (void)len, (void)flags;
	if (svc == NULL)
		return fail(TPEINVAL);
	NOT_HERE(TPENOENT);
}

int
tpdiscon(int cd)
{
	(void)cd;
	NOT_HERE(TPEBADDESC);
}

int
tpsend(int cd, char *data, long len, long flags, long *revent)
{
	(void)cd, (void)data, (void)len, (void)flags, (void)revent;
	NOT_HERE(TPEBADDESC);
}

int
tprecv(int cd, char **data, long *len, long flags, long *revent)
{
	(void)cd, (void)data, (void)len, (void)flags, (void)revent;
	NOT_HERE(TPEBADDESC);
}

/* --- unsolicited messages: nobody receives any --- */

int
tpnotify(CLIENTID *clientid, char *data, long len, long flags)
{
	(void)data, (void)len, (void)flags;
	if (clientid == NULL)
		return fail(TPEINVAL);
	NOT_HERE(TPENOENT);
}

int
tpbroadcast(char *lmid, char *usrname, char *cltname, char *data, long len, long flags)
{
	(void)lmid, (void)usrname, (void)cltname, (void)data, (void)len, (void)flags;
	NOT_HERE(TPESYSTEM);
}

static void (*unsolicited)(char *, long, long);

void (*tpsetunsol(void (*disp)(char *data, long len, long flags)))(char *data, long len, long flags)
{
	return __atomic_exchange_n(&unsolicited, disp, __ATOMIC_RELAXED);
}

int
tpchkunsol(void)
{
	return 0;		/* none has come */
}

/* --- the event broker cannot be reached --- */

long
tpsubscribe(char *eventexpr, char *filter, TPEVCTL *ctl, long flags)
{
	(void)filter, (void)ctl, (void)flags;
	if (eventexpr == NULL)
		return fail(TPEINVAL);
	NOT_HERE(TPENOENT);
}

int
tpunsubscribe(long subscription, long flags)
{
	(void)subscription, (void)flags;
	NOT_HERE(TPENOENT);
}

int
tppost(char *eventname, char *data, long len, long flags)
{
	(void)data, (void)len, (void)flags;
	if (eventname == NULL)
		return fail(TPEINVAL);
	NOT_HERE(TPENOENT);
}

/* --- threads that a server's own code starts --- */

int
tpappthrinit(TPINIT *tpinfo)
{
	(void)tpinfo;
	NOT_HERE(TPEPROTO);
}

int
tpappthrterm(void)
{
	NOT_HERE(TPEPROTO);
}

/* --- encodings: no buffer is an MBSTRING --- */

int
tpgetmbenc(char *bufp, char *enc_name, long flags)
{
	if (bufp == NULL || enc_name == NULL || flags != 0)
		return fail(TPEINVAL);
	NOT_HERE(TPEPROTO);
}

int
tpsetmbenc(char *bufp, char *enc_name, long flags)
{
	(void)enc_name, (void)flags;
	if (bufp == NULL)
		return fail(TPEINVAL);
	NOT_HERE(TPEPROTO);
}
