{{- define "gvList" -}}
{{- range . -}}
# API reference: {{ .GroupVersionString }}

Generated from the types in [api/v1beta1](../api/v1beta1) by `make generate`. `kubectl explain rollset --recursive` says
the same, the fields of the pod template included. Beyond the limits listed here the API server checks rules that relate
fields; each of them is named in its field's description, and the refusal names the field.
{{ template "type" (dict "type" (.TypeForKind "RollSet") "seen" (dict)) }}
{{- end -}}
{{- end -}}
