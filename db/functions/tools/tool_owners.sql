-- Which agent types may offer a tool (0002_agents.sql, tool_owners).

CREATE FUNCTION name_of_tool(tool jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT CASE WHEN jsonb_typeof(tool) = 'object' THEN tool ->> 'name' ELSE tool #>> '{}' END $$;

-- Of tools as an agent declares them, those that its type may offer, in their order. NULL for NULL.
CREATE FUNCTION offerable_tools(of_tenant text, of_type text, tools jsonb) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN tools IS NOT NULL THEN coalesce((
    SELECT jsonb_agg(t.tool ORDER BY t.place) FROM jsonb_array_elements(tools) WITH ORDINALITY AS t (tool, place)
     WHERE NOT EXISTS (SELECT 1 FROM tool_owners o WHERE o.tenant_id = of_tenant AND o.tool = name_of_tool(t.tool)
       AND of_type <> ALL (o.agent_types))), '[]') END
$$;
