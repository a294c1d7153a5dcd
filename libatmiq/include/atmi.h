/*
 * atmi.h - the words of ATMI and /Q, as programs written for Tuxedo use them.
 *
 * Names, values and member order are interface facts; see atmiq(7) for what they mean and each call's manual page for
 * its errors.  Everything is `char *`, as in the C binding, so that C++ casts and old function pointers still fit.
 */
#ifndef ATMI_H
#define ATMI_H

#ifdef __GNUC__
#pragma GCC visibility push(default)	/* a server's own tpsvrinit() must be seen from the library */
#endif
#ifdef __cplusplus
extern "C" {
#endif

#ifndef _TMDLLENTRY
#define _TMDLLENTRY
#endif
#ifndef _TM_FAR
#define _TM_FAR
#endif
#ifndef _
#define _(args) args
#endif

/* --- lengths --- */
#define MAXTIDENT 30
#define XATMI_SERVICE_NAME_LENGTH 128
#define TMQNAMELEN 127		/* usable characters; arrays are one longer */
#define TMQSNAMELEN 15
#define TMMSGIDLEN 32		/* bytes, all significant */
#define TMCORRIDLEN 32

/* --- call flags --- */
#ifndef TPNOFLAGS
#define TPNOFLAGS 0x00000000
#endif
#define TPNOBLOCK 0x00000001
#define TPSIGRSTRT 0x00000002
#define TPNOREPLY 0x00000004
#define TPNOTRAN 0x00000008
#define TPTRAN 0x00000010
#define TPNOTIME 0x00000020
#define TPABSOLUTE 0x00000040
#define TPGETANY 0x00000080
#define TPNOCHANGE 0x00000100
#define TPCONV 0x00000400
#define TPSENDONLY 0x00000800
#define TPRECVONLY 0x00001000
#define TPACK 0x00002000

/* --- tpreturn --- */
#define TPFAIL 0x00000001
#define TPSUCCESS 0x00000002
#define TPEXIT 0x08000000

/* --- tpscmt --- */
#define TP_CMT_LOGGED 0x01
#define TP_CMT_COMPLETE 0x02

/* --- TPINIT.flags, contexts, authentication --- */
#define TPU_MASK 0x00000047
#define TPU_SIG 0x00000001
#define TPU_DIP 0x00000002
#define TPU_IGN 0x00000004
#define TPSA_FASTPATH 0x00000008
#define TPSA_PROTECTED 0x00000010
#define TPMULTICONTEXTS 0x00000020
#define TPU_THREAD 0x00000040
#define TPNOAUTH 0
#define TPSYSAUTH 1
#define TPAPPAUTH 2
typedef long TPCONTEXT_T;
#define TPSINGLECONTEXT 0
#define TPINVALIDCONTEXT -1
#define TPNULLCONTEXT -2

/* --- conversations, events, blocking time, conversion --- */
#define TPEV_DISCONIMM 0x0001
#define TPEV_SVCERR 0x0002
#define TPEV_SVCFAIL 0x0004
#define TPEV_SVCSUCC 0x0008
#define TPEV_SENDONLY 0x0020
#define TPEVSERVICE 0x00000001
#define TPEVQUEUE 0x00000002
#define TPEVTRAN 0x00000004
#define TPEVPERSIST 0x00000008
#define TPBLK_NEXT 1
#define TPBLK_ALL 2
#define TPBLK_SECOND 0
#define TPBLK_MILLISECOND 0x01000000
#define TPTOSTRING 0x40000000
#define TPCONVCLTID 0x00000001
#define TPCONVTRANID 0x00000002
#define TPCONVXID 0x00000004
#define TPCONVMAXSTR 256
#define TPEX_STRING 1
#define TPSINGLETON 1
#define TPSECONDARYRQ 2
#define RM_ENC 1
#define X_OCTET "X_OCTET"
#define X_C_TYPE "X_C_TYPE"
#define X_COMMON "X_COMMON"

/* --- tperrno --- */
#define TPMINVAL 0
#define TPEABORT 1
#define TPEBADDESC 2
#define TPEBLOCK 3
#define TPEINVAL 4
#define TPELIMIT 5
#define TPENOENT 6
#define TPEOS 7
#define TPEPERM 8
#define TPEPROTO 9
#define TPESVCERR 10
#define TPESVCFAIL 11
#define TPESYSTEM 12
#define TPETIME 13
#define TPETRAN 14
#define TPGOTSIG 15
#define TPERMERR 16
#define TPEITYPE 17
#define TPEOTYPE 18
#define TPERELEASE 19
#define TPEHAZARD 20
#define TPEHEURISTIC 21
#define TPEEVENT 22
#define TPEMATCH 23
#define TPEDIAGNOSTIC 24
#define TPEMIB 25
#define TPENOSINGLETON 26
#define TPENOSECONDARYRQ 27
#define TPMAXVAL 28

#define TPED_MINVAL 0
#define TPED_SVCTIMEOUT 1
#define TPED_TERM 2
#define TPED_NOUNSOLHANDLER 3
#define TPED_NOCLIENT 4
#define TPED_DOMAINUNREACHABLE 5
#define TPED_CLIENTDISCONNECTED 6
#define TPED_PERM 7
#define TPED_OTS_INTERNAL 8
#define TPED_INVALID_CERTIFICATE 9
#define TPED_INVALID_SIGNATURE 10
#define TPED_DECRYPTION_FAILURE 11
#define TPED_INVALIDCONTEXT 12
#define TPED_INVALID_XA_TRANSACTION 13
#define TPED_MAXVAL 14

/* --- structures --- */
struct clientid_t { long clientdata[4]; };
typedef struct clientid_t CLIENTID;

#ifndef _QADDON
#define _QADDON
/* TPQCTL.flags.  Test with a mask, never with ==: the GETBY values have two bits, of which the old one alone counts too. */
#define TPQCORRID 0x00001
#define TPQFAILUREQ 0x00002
#define TPQBEFOREMSGID 0x00004
#define TPQGETBYMSGIDOLD 0x00008
#define TPQMSGID 0x00010
#define TPQPRIORITY 0x00020
#define TPQTOP 0x00040
#define TPQWAIT 0x00080
#define TPQREPLYQ 0x00100
#define TPQTIME_ABS 0x00200
#define TPQTIME_REL 0x00400
#define TPQGETBYCORRIDOLD 0x00800
#define TPQPEEK 0x01000
#define TPQDELIVERYQOS 0x02000
#define TPQREPLYQOS 0x04000
#define TPQEXPTIME_ABS 0x08000
#define TPQEXPTIME_REL 0x10000
#define TPQEXPTIME_NONE 0x20000
#define TPQGETBYMSGID 0x40008
#define TPQGETBYCORRID 0x80800

/* delivery_qos, reply_qos: exactly one */
#define TPQQOSDEFAULTPERSIST 0x00001
#define TPQQOSPERSISTENT 0x00002
#define TPQQOSNONPERSISTENT 0x00004

struct tpqctl_t {
	long flags;		/* which members count */
	long deq_time;		/* seconds, absolute or relative */
	long priority;		/* 1..100 */
	long diagnostic;	/* QME code when tperrno is TPEDIAGNOSTIC */
	char msgid[TMMSGIDLEN];
	char corrid[TMCORRIDLEN];
	char replyqueue[TMQNAMELEN + 1];
	char failurequeue[TMQNAMELEN + 1];
	CLIENTID cltid;
	long urcode;
	long appkey;
	long delivery_qos;
	long reply_qos;
	long exp_time;		/* seconds, absolute or relative */
};
typedef struct tpqctl_t TPQCTL;

/* TPQCTL.diagnostic */
#define QMEINVAL -1
#define QMEBADRMID -2
#define QMENOTOPEN -3
#define QMETRAN -4
#define QMEBADMSGID -5
#define QMESYSTEM -6
#define QMEOS -7
#define QMEABORTED -8
#define QMENOTA QMEABORTED
#define QMEPROTO -9
#define QMEBADQUEUE -10
#define QMENOMSG -11
#define QMEINUSE -12
#define QMENOSPACE -13
#define QMERELEASE -14
#define QMEINVHANDLE -15
#define QMESHARE -16
#endif

struct tpsvcinfo {
	char name[XATMI_SERVICE_NAME_LENGTH];
	long flags;
	char *data;
	long len;
	int cd;
	long appkey;
	CLIENTID cltid;
};
typedef struct tpsvcinfo TPSVCINFO;

struct tpinfo_t {
	char usrname[MAXTIDENT + 2];
	char cltname[MAXTIDENT + 2];
	char passwd[MAXTIDENT + 2];
	char grpname[MAXTIDENT + 2];
	long flags;
	long datalen;
	long data;		/* first word of datalen bytes */
};
typedef struct tpinfo_t TPINIT;
#define TPINITNEED(u) ((u) > (long)sizeof(long) ? (long)(sizeof(TPINIT) - sizeof(long) + (u)) : (long)sizeof(TPINIT))

struct tp_tranid_t { long info[6]; };
typedef struct tp_tranid_t TPTRANID;

struct tpevctl_t {
	long flags;
	char name1[XATMI_SERVICE_NAME_LENGTH];
	char name2[XATMI_SERVICE_NAME_LENGTH];
	TPQCTL qctl;
};
typedef struct tpevctl_t TPEVCTL;

/* --- errors and return codes: lvalues, one for each thread --- */
int *_tmget_tperrno_addr(void);
long *_tmget_tpurcode_addr(void);
#define tperrno (*_tmget_tperrno_addr())
#define tpurcode (*_tmget_tpurcode_addr())
char *tpstrerror(int err);
int tperrordetail(long flags);
char *tpstrerrordetail(int err, long flags);

/* --- buffers --- */
char *tpalloc(char *type, char *subtype, long size);
char *tprealloc(char *ptr, long size);
void tpfree(char *ptr);
long tptypes(char *ptr, char *type, char *subtype);

/* --- joining, contexts --- */
int tpinit(TPINIT *tpinfo);
int tpterm(void);
int tpchkauth(void);
int tpgetctxt(TPCONTEXT_T *context, long flags);
int tpsetctxt(TPCONTEXT_T context, long flags);
int tpappthrinit(TPINIT *tpinfo);
int tpappthrterm(void);

/* --- calling --- */
int tpcall(char *svc, char *idata, long ilen, char **odata, long *olen, long flags);
int tpacall(char *svc, char *data, long len, long flags);
int tpgetrply(int *cd, char **data, long *len, long flags);
int tpcancel(int cd);
int tpgprio(void);
int tpsprio(int prio, long flags);
int tpsblktime(int blktime, long flags);
int tpgblktime(long flags);

/* --- queues --- */
int tpenqueue(char *qspace, char *qname, TPQCTL *ctl, char *data, long len, long flags);
int tpdequeue(char *qspace, char *qname, TPQCTL *ctl, char **data, long *len, long flags);

/* --- transactions --- */
int tpopen(void);
int tpclose(void);
int tpbegin(unsigned long timeout, long flags);
int tpcommit(long flags);
int tpabort(long flags);
int tpgetlev(void);
int tpsuspend(TPTRANID *tranid, long flags);
int tpresume(TPTRANID *tranid, long flags);
int tpscmt(long flags);

/* --- serving --- */
struct xa_switch_t;
struct tmsvc { char *name, *function; void (*call)(TPSVCINFO *); };	/* name NULL: a function that CLOPT -s may name */
struct tmserver {			/* written by buildserver */
	struct tmsvc *services;		/* ends with an entry whose call is NULL */
	struct xa_switch_t *rm;
	int (*init)(int, char **);
	void (*done)(void);
};
struct tmthreads { int (*init)(int, char **); void (*done)(void); };	/* the same, by buildserver -t */
int _tmstartserver(int argc, char **argv, struct tmserver *server);
int _tmstartthreads(int argc, char **argv, struct tmserver *server, struct tmthreads *threads);
void tpreturn(int rval, long rcode, char *data, long len, long flags);
void tpforward(char *svc, char *data, long len, long flags);
int tpadvertise(char *svcname, void (*func)(TPSVCINFO *));
int tpadvertisex(char *svcname, void (*func)(TPSVCINFO *), long flags);
int tpunadvertise(char *svcname);
int tpsvrinit(int argc, char **argv);
void tpsvrdone(void);
int tpsvrthrinit(int argc, char **argv);
void tpsvrthrdone(void);

/* --- conversations, unsolicited messages, events --- */
int tpconnect(char *svc, char *data, long len, long flags);
int tpdiscon(int cd);
int tpsend(int cd, char *data, long len, long flags, long *revent);
int tprecv(int cd, char **data, long *len, long flags, long *revent);
int tpnotify(CLIENTID *clientid, char *data, long len, long flags);
int tpbroadcast(char *lmid, char *usrname, char *cltname, char *data, long len, long flags);
typedef void (*TPUNSOLHANDLER)(char *data, long len, long flags);
#define TPUNSOLERR ((void (*)(char *, long, long)) -1)
void (*tpsetunsol(void (*disp)(char *data, long len, long flags)))(char *data, long len, long flags);
int tpchkunsol(void);
long tpsubscribe(char *eventexpr, char *filter, TPEVCTL *ctl, long flags);
int tpunsubscribe(long subscription, long flags);
int tppost(char *eventname, char *data, long len, long flags);

/* --- conversion, environment, time --- */
int tpconvert(char *str, char *bin, long flags);
int tpexport(char *ibuf, long ilen, char *ostr, long *olen, long flags);
int tpimport(char *istr, long ilen, char **obuf, long *olen, long flags);
int tpgetmbenc(char *bufp, char *enc_name, long flags);
int tpsetmbenc(char *bufp, char *enc_name, long flags);
char *tuxgetenv(char *name);
int tuxputenv(char *string);
int tuxreadenv(char *file, char *label);
struct tm;
long gp_mktime(struct tm *timeptr);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
