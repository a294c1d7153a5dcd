/*
 * client - put a line of text on the queue STRING and wait for what comes back on RPLYQ.
 *
 * TMQFORWARD takes the request from STRING, calls the service of that name, and puts the service's answer on the reply
 * queue that the request names.  The client need not be running meanwhile: it could fetch the answer tomorrow.
 */
#include <stdio.h>
#include <string.h>
#include "Uunix.h"
#include "atmi.h"

#define TEXT "these words were typed in lower case"

static int
failed(const char *call, TPQCTL *ctl)
{
	fprintf(stderr, "%s: %s", call, tpstrerror(tperrno));
	if (ctl != NULL && tperrno == TPEDIAGNOSTIC)
		fprintf(stderr, " (diagnostic %ld)", ctl->diagnostic);
	fprintf(stderr, "\n");
	tpterm();
	return 1;
}

int
main(void)
{
	TPQCTL ctl;		/* members whose flag is off are never looked at, so they need no value */
	char *text;
	long len;

	if (tpinit((TPINIT *)NULL) == -1)
		return failed("tpinit", NULL);
	if ((text = tpalloc("STRING", NULL, 100)) == NULL)
		return failed("tpalloc", NULL);
	snprintf(text, 100, "%s", TEXT);

	ctl.flags = TPQREPLYQ | TPQDELIVERYQOS;
	ctl.delivery_qos = TPQQOSNONPERSISTENT;
	snprintf(ctl.replyqueue, sizeof ctl.replyqueue, "%s", "RPLYQ");
	printf("before: %s\n", text);
	if (tpenqueue("QSPACE", "STRING", &ctl, text, 0, 0) == -1)
		return failed("tpenqueue", &ctl);

	ctl.flags = TPQWAIT;
	if (tpdequeue("QSPACE", "RPLYQ", &ctl, &text, &len, TPNOTIME) == -1)
		return failed("tpdequeue", &ctl);
	printf("after:  %s\n", text);

	tpfree(text);
	tpterm();
	return 0;
}
