{{/* The prefix of all names. A release named rollset gives the names of config/default. */}}
{{- define "rollset.prefix" -}}
{{- if contains "rollset" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-rollset" (.Release.Name | trunc 32 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{/* The labels of all objects. */}}
{{- define "rollset.labels" -}}
app.kubernetes.io/name: rollset
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The labels that select the manager's pods. */}}
{{- define "rollset.selector" -}}
control-plane: controller-manager
app.kubernetes.io/name: rollset
{{- end -}}

{{/* The manager's image. */}}
{{- define "rollset.image" -}}
{{ .Values.image.repository }}{{ with .Values.image.tag }}:{{ . }}{{ end }}{{ with .Values.image.digest }}@{{ . }}{{ end }}
{{- end -}}

{{/* The manager, as the subject of a binding. */}}
{{- define "rollset.subjects" -}}
subjects:
- kind: ServiceAccount
  name: {{ include "rollset.prefix" . }}-controller-manager
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* The generated rules of a role of the manager: a list of the context and the role's name. */}}
{{- define "rollset.rules" -}}
{{- $name := index . 1 -}}
{{- $files := (index . 0).Files -}}
{{- range splitList "---\n" (printf "%s\n%s" ($files.Get "files/role.yaml") ($files.Get "files/disruption_role.yaml")) -}}
{{- $role := fromYaml . -}}
{{- if eq (dig "metadata" "name" "" $role) $name -}}
rules:
{{ toYaml $role.rules }}
{{- end -}}
{{- end -}}
{{- end -}}
