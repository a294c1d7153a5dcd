/*
 * tx.h - the X/Open TX interface: transactions, without tperrno.
 */
#ifndef TX_H
#define TX_H

#include "xa.h"

#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef long COMMIT_RETURN;
#define TX_COMMIT_COMPLETED 0
#define TX_COMMIT_DECISION_LOGGED 1
typedef long TRANSACTION_CONTROL;
#define TX_UNCHAINED 0
#define TX_CHAINED 1
typedef long TRANSACTION_TIMEOUT;	/* seconds, 0: none */
typedef long TRANSACTION_STATE;
#define TX_ACTIVE 0
#define TX_TIMEOUT_ROLLBACK_ONLY 1
#define TX_ROLLBACK_ONLY 2

struct tx_info_t {
	XID xid;
	COMMIT_RETURN when_return;
	TRANSACTION_CONTROL transaction_control;
	TRANSACTION_TIMEOUT transaction_timeout;
	TRANSACTION_STATE transaction_state;
};
typedef struct tx_info_t TXINFO;

int tx_open(void);
int tx_close(void);
int tx_begin(void);
int tx_commit(void);
int tx_rollback(void);
int tx_info(TXINFO *info);		/* 1 in a transaction, 0 outside, or an error */
int tx_set_commit_return(COMMIT_RETURN when_return);
int tx_set_transaction_control(TRANSACTION_CONTROL control);
int tx_set_transaction_timeout(TRANSACTION_TIMEOUT timeout);

#define TX_NOT_SUPPORTED 1
#define TX_OK 0
#define TX_OUTSIDE -1
#define TX_ROLLBACK -2
#define TX_MIXED -3
#define TX_HAZARD -4
#define TX_PROTOCOL_ERROR -5
#define TX_ERROR -6
#define TX_FAIL -7
#define TX_EINVAL -8
#define TX_COMMITTED -9
#define TX_NO_BEGIN -100
#define TX_ROLLBACK_NO_BEGIN (TX_ROLLBACK + TX_NO_BEGIN)
#define TX_MIXED_NO_BEGIN (TX_MIXED + TX_NO_BEGIN)
#define TX_HAZARD_NO_BEGIN (TX_HAZARD + TX_NO_BEGIN)
#define TX_COMMITTED_NO_BEGIN (TX_COMMITTED + TX_NO_BEGIN)

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
