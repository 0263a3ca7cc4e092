package renku

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"carrick/cluster/web"
	"carrick/steps"
)

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// parseMember parses user:UUID, user:UUID:prohibited, group:ID or project:ID.
func parseMember(v string) (member, error) {
	kind, rest, _ := strings.Cut(v, ":")
	id, role, given := strings.Cut(rest, ":")
	roles := memberRoles[kind]
	switch {
	case roles == nil || id == "":
		return member{}, fmt.Errorf("%q is not user:UUID, group:ID or project:ID", v)
	case kind == "user" && !uuid.MatchString(id):
		return member{}, fmt.Errorf(
			"%q is not a UUID. Keycloak shows the UUID as the user's ID, and Renku returns it in GET /api/data/users", id,
		)
	case strings.ContainsAny(id, "/?#% "):
		return member{}, fmt.Errorf("%q is not a valid ID", id)
	case !given:
		role = roles[0]
	case !slices.Contains(roles, role):
		return member{}, fmt.Errorf("%q is not a role of a %s; the roles are %s", role, kind, strings.Join(roles, ", "))
	}
	return member{kind, id, role}, nil
}

func checkMember(v string) error {
	_, err := parseMember(v)
	return err
}

// members returns the members of a pool. Older versions of Renku support only users as members.
func members(ctx context.Context, api *web.Client, id int) ([]member, error) {
	var out []member
	_, err := api.JSON(ctx, "GET", fmt.Sprintf("/resource_pools/%d/members", id), nil, &out)
	if !noSuchPath(err) {
		return out, err
	}
	var users []struct {
		ID string `json:"id"`
	}
	_, err = api.JSON(ctx, "GET", fmt.Sprintf("/resource_pools/%d/users", id), nil, &users)
	for _, u := range users {
		out = append(out, member{"user", u.ID, "viewer"})
	}
	return out, err
}

// noSuchPath reports whether err means that this version of Renku does not serve the path. Status
// 404 alone is not sufficient, because Renku also answers 404 for an unknown user, group or project
// (renku-data-services @ e81895b4: components/renku_data_services/crc/db.py _resolve_members).
func noSuchPath(err error) bool {
	e, ok := err.(*web.Error)
	return ok && (e.Status == 405 || e.Status == 404 && (e.Code == 0 || strings.HasPrefix(e.Message, "Requested URL")))
}

// missingMembers returns the members in pool.members that are not in the pool yet.
func missingMembers(ctx context.Context, e steps.Env, api *web.Client, id int) ([]member, error) {
	have, err := members(ctx, api, id)
	if err != nil {
		return nil, err
	}
	var out []member
	for _, typed := range e.Answers.List("pool.members") {
		m, err := parseMember(typed)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(have, m) {
			out = append(out, m)
		}
	}
	return out, nil
}

func previewMembers(ctx context.Context, e steps.Env) (steps.Change, error) {
	c := steps.Change{}
	if len(e.Answers.List("pool.members")) == 0 {
		return c, nil
	}
	id, err := poolNumber(e)
	if err != nil {
		return c, later(err)
	}
	api, err := signedInAPI(e)
	if err != nil {
		return c, err
	}
	lacking, err := missingMembers(ctx, e, api, id)
	if err != nil {
		return c, later(err)
	}
	for _, m := range lacking {
		c.Items = append(
			c.Items, steps.Item{Verb: steps.Create, What: fmt.Sprintf("%s of pool %d in Renku", m, id), Hash: m.String()},
		)
	}
	return c, nil
}

func makeMembers(ctx context.Context, e steps.Env, say steps.Progress) error {
	id, err := poolNumber(e)
	if err != nil {
		return err
	}
	api, err := signedInAPI(e)
	if err != nil {
		return err
	}
	lacking, err := missingMembers(ctx, e, api, id)
	if err != nil {
		return failing(e, "list the pool's members", err)
	}
	for _, m := range lacking {
		_, err := api.JSON(ctx, "POST", fmt.Sprintf("/resource_pools/%d/members", id), []member{m}, nil)
		if noSuchPath(err) && m.Type == "user" && m.Role == "viewer" {
			_, err = api.JSON(ctx, "POST", fmt.Sprintf("/resource_pools/%d/users", id), []map[string]any{{"id": m.ID}}, nil)
		}
		if err != nil {
			return failing(e, "add "+m.Type+" "+m.ID+" to the pool", err)
		}
		say.Did(steps.Create, fmt.Sprintf("%s of pool %d in Renku", m, id), "")
	}
	return nil
}

func poolNumber(e steps.Env) (int, error) {
	v, err := localFacts(e).Value("pool-id")
	if err != nil {
		return 0, err
	}
	id, ok := v.(int)
	if !ok {
		return 0, fmt.Errorf("reading the pool's ID: expected an integer, got %T", v)
	}
	return id, nil
}
