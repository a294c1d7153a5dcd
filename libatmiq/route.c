/*
 * route - data-dependent routing: which group a request goes to for what is in its data.
 *
 * A criterion that sends all values to one group is obeyed for every buffer.  One that asks for the value of a field is obeyed where
 * the program has a type with a function for it (tuxtypes(5)); FML and views come with a later version, and XML is not looked into.
 */
#include <string.h>

#include "impl.h"
#include "typesw.h"
#include "ulog.h"

/* By the function that the program gives for its type.  0, TPESYSTEM; *known false: there is none. */
static int
route_by_program(const struct service *s, const char *type, const char *subtype, char *data, long len, char *group, bool *known)
{
	const struct tmtype_sw_t *t = typesw_find(type, subtype);
	char routing[WIRE_NAME], service[WIRE_NAME], chosen[WIRE_NAME] = "";

	*known = t != NULL && t->route != NULL && data != NULL;
	if (!*known)
		return 0;
	snprintf(routing, sizeof routing, "%s", s->routing);
	snprintf(service, sizeof service, "%s", s->name);
	if (t->route(routing, service, data, len, chosen) < 0) {
		ulog("LIBTUX_CAT:5234: ERROR: service %s is not called: the routing function of type %s finds no group by criterion %s",
		    service, type, routing);
		return TPESYSTEM;
	}
	chosen[sizeof chosen - 1] = '\0';
	snprintf(group, WIRE_GROUP, "%.*s", WIRE_GROUP - 1, strcmp(chosen, "*") == 0 ? "" : chosen);
	return 0;
}

/* The buffer that a message is dequeued into tells of no value: only a criterion without one counts. */
void
route_dequeue(const struct app *app, const struct service *s, const char *type, const char *subtype, char group[WIRE_GROUP])
{
	const struct ubb_routing *r;

	if (s->routing[0] != '\0' && (r = ubb_routing_find(app->ubb, s->routing, type, subtype)) != NULL)
		(void)ubb_routing_of_all(r, group, WIRE_GROUP);
}

int
route_choose(const struct app *app, const struct service *s, const char *type, const char *subtype, char *data, long len,
    char group[WIRE_GROUP])
{
	const struct ubb_routing *r;
	bool known;
	int err;

	group[0] = '\0';
	if (s->routing[0] == '\0' || *type == '\0' || (r = ubb_routing_find(app->ubb, s->routing, type, subtype)) == NULL)
		return 0;
	if (ubb_routing_of_all(r, group, WIRE_GROUP))
		return 0;
	if ((err = route_by_program(s, type, subtype, data, len, group, &known)) != 0 || known)
		return err;
	ulog("LIBTUX_CAT:5233: ERROR: service %s is not called: criterion %s routes by the value of field %s, which cannot be read "
	     "from a buffer of type %s",
	    s->name, r->name, r->field, type);
	return TPESYSTEM;
}
