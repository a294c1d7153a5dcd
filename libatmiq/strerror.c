/*
 * strerror - what the codes mean, in words.
 */
#include <stddef.h>

#include "impl.h"

static const char *const texts[] = {
	[TPEABORT] = "TPEABORT - transaction could not commit and was rolled back",
	[TPEBADDESC] = "TPEBADDESC - bad call or connection descriptor",
	[TPEBLOCK] = "TPEBLOCK - would block and TPNOBLOCK was given",
	[TPEINVAL] = "TPEINVAL - invalid argument",
	[TPELIMIT] = "TPELIMIT - a limit is reached",
	[TPENOENT] = "TPENOENT - no such service, or no application to join",
	[TPEOS] = "TPEOS - operating system error",
	[TPEPERM] = "TPEPERM - not permitted",
	[TPEPROTO] = "TPEPROTO - called in a wrong context or order",
	[TPESVCERR] = "TPESVCERR - the service did not complete",
	[TPESVCFAIL] = "TPESVCFAIL - the service reported a failure of the application",
	[TPESYSTEM] = "TPESYSTEM - system error, see the user log",
	[TPETIME] = "TPETIME - time is over, or the transaction can only be rolled back",
	[TPETRAN] = "TPETRAN - cannot begin or join a transaction",
	[TPGOTSIG] = "TPGOTSIG - a signal came and TPSIGRSTRT was not given",
	[TPERMERR] = "TPERMERR - resource manager could not be opened or closed",
	[TPEITYPE] = "TPEITYPE - the service does not accept this type of buffer",
	[TPEOTYPE] = "TPEOTYPE - the caller does not accept the type of the answer",
	[TPERELEASE] = "TPERELEASE - the peer is of a release that lacks this feature",
	[TPEHAZARD] = "TPEHAZARD - the outcome may have been decided heuristically",
	[TPEHEURISTIC] = "TPEHEURISTIC - part was committed and part rolled back heuristically",
	[TPEEVENT] = "TPEEVENT - an event occurred on the conversation",
	[TPEMATCH] = "TPEMATCH - there is one already",
	[TPEDIAGNOSTIC] = "TPEDIAGNOSTIC - queue operation failed, see the diagnostic",
	[TPEMIB] = "TPEMIB - administrative request failed",
	[TPENOSINGLETON] = "TPENOSINGLETON - no singleton service",
	[TPENOSECONDARYRQ] = "TPENOSECONDARYRQ - no secondary request queue",
};

static const char *const details[] = {
	[TPED_SVCTIMEOUT] = "TPED_SVCTIMEOUT - the service took too long",
	[TPED_TERM] = "TPED_TERM - the client has left",
	[TPED_NOUNSOLHANDLER] = "TPED_NOUNSOLHANDLER - the client has no handler for unsolicited messages",
	[TPED_NOCLIENT] = "TPED_NOCLIENT - no such client",
	[TPED_DOMAINUNREACHABLE] = "TPED_DOMAINUNREACHABLE - the domain cannot be reached",
	[TPED_CLIENTDISCONNECTED] = "TPED_CLIENTDISCONNECTED - the client is disconnected",
	[TPED_PERM] = "TPED_PERM - not permitted",
	[TPED_OTS_INTERNAL] = "TPED_OTS_INTERNAL - error in the object transaction service",
	[TPED_INVALID_CERTIFICATE] = "TPED_INVALID_CERTIFICATE - invalid certificate",
	[TPED_INVALID_SIGNATURE] = "TPED_INVALID_SIGNATURE - invalid signature",
	[TPED_DECRYPTION_FAILURE] = "TPED_DECRYPTION_FAILURE - cannot be decrypted",
	[TPED_INVALIDCONTEXT] = "TPED_INVALIDCONTEXT - the context was left by another thread",
	[TPED_INVALID_XA_TRANSACTION] = "TPED_INVALID_XA_TRANSACTION - a transaction in a group without one",
};

char *
tpstrerror(int err)
{
	if (err <= TPMINVAL || err >= TPMAXVAL)
		return NULL;
	return (char *)texts[err];
}

int
tperrordetail(long flags)
{
	return flags == 0 ? TPED_MINVAL : fail(TPEINVAL);
}

char *
tpstrerrordetail(int err, long flags)
{
	if (flags != 0 || err <= TPED_MINVAL || err >= TPED_MAXVAL)
		return NULL;
	return (char *)details[err];
}
