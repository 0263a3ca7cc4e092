{{- define "renku.fullname" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{ .Release.Name }}
{{- else -}}
{{ printf "%s-%s" .Release.Name .Chart.Name }}
{{- end -}}
{{- end -}}
