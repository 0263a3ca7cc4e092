{{- define "renku.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- /* A value as YAML in block style. Helm has toYaml for that, which the sandbox's Render lacks. */}}
{{- define "renku.yaml" -}}
{{- $type := printf "%T" . -}}
{{- if not . -}}
{{ toJson . | printf " %s" }}
{{- else if contains "map[" $type -}}
{{- range $key, $value := . }}
{{ toJson $key }}:{{ include "renku.yaml" $value | indent 2 }}
{{- end -}}
{{- else if contains "[]" $type -}}
{{- range . }}
-{{ include "renku.yaml" . | indent 2 }}
{{- end -}}
{{- else -}}
{{ toJson . | printf " %s" }}
{{- end -}}
{{- end -}}
