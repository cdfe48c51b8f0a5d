{{- /* A type with fields, and then, once each, the types of those fields: in the order of the manifest. */ -}}
{{- define "type" -}}
{{- $type := .type -}}
{{- $seen := .seen -}}
{{- if not (hasKey $seen $type.Name) -}}
{{- $_ := set $seen $type.Name true }}
## {{ $type.Name }}

{{ $type.Doc | replace "<" "&lt;" }}

| field | type | default, limits | meaning |
|---|---|---|---|
{{ if $type.GVK -}}
| `apiVersion` | string | `{{ $type.GVK.Group }}/{{ $type.GVK.Version }}` | |
| `kind` | string | `{{ $type.GVK.Kind }}` | |
{{ end -}}
{{ range $type.Members -}}
| `{{ .Name }}` | {{ template "kind" .Type }} | {{ template "limits" . }} | {{ template "meaning" . }} |
{{ end -}}
{{ range $type.Members -}}
{{ $inner := .Type -}}
{{ range until 3 -}}
{{ if and $inner.UnderlyingType (not $inner.Members) }}{{ $inner = $inner.UnderlyingType }}{{ end -}}
{{ end -}}
{{ if and $inner.Members (hasSuffix "api/v1beta1" $inner.Package) -}}
{{ template "type" (dict "type" $inner "seen" $seen) -}}
{{ end -}}
{{ end -}}
{{ end -}}
{{ end -}}

{{- define "meaning" -}}
{{- if eq .Name "metadata" -}}
the standard object metadata
{{- else -}}
{{ .Doc | replace "\n" " " | replace "|" "\\|" | replace "<" "&lt;" }}
{{- end -}}
{{- end -}}

{{- /* An enum is a string with limits; a link to a page about numbers does not help. */ -}}
{{- define "kind" -}}
{{- if and .IsAlias (not .Members) -}}
string
{{- else -}}
{{ regexReplaceAll "\\[IntOrString\\]\\([^)]*\\)" (markdownRenderType .) "integer or string" }}
{{- end -}}
{{- end -}}

{{- define "limits" -}}
{{- $limits := list -}}
{{- if and .Default (ne (.Default | nospace) "{}") -}}
{{- $limits = append $limits (printf "`%s`" (.Default | nospace)) -}}
{{- end -}}
{{- range .Validation -}}
{{- if hasPrefix "Enum" . -}}
{{- $limits = append $limits (printf "one of `%s`" (. | trimPrefix "Enum: [" | trimSuffix "]" | replace " " "`, `")) -}}
{{- end -}}
{{- if regexMatch "^(Minimum|Maximum|MinLength|MaxLength|MaxItems|MaxProperties):" . -}}
{{- $limits = append $limits (. | replace "Minimum: " "≥ " | replace "Maximum: " "≤ " | replace "MinLength:" "at least" | replace "MaxLength:" "at most" | replace "MaxItems:" "at most" | replace "MaxProperties:" "at most" | replace "1e+09" "1000000000") -}}
{{- end -}}
{{- if hasPrefix "Required" . -}}
{{- $limits = append $limits "required" -}}
{{- end -}}
{{- end -}}
{{ join "; " $limits }}
{{- end -}}
