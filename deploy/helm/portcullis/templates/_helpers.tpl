{{/* The name of everything that belongs to a release. */}}
{{- define "portcullis.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The labels that never change; selectors are made of them. */}}
{{- define "portcullis.selector" -}}
app.kubernetes.io/name: portcullis
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "portcullis.labels" -}}
{{ include "portcullis.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "portcullis.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "portcullis.policies" -}}
{{- default (printf "%s-policies" (include "portcullis.name" .)) .Values.policiesConfigMap -}}
{{- end -}}

{{/* The port of the API. */}}
{{- define "portcullis.port" -}}
{{- if .Values.tls.secret -}}8443{{- else -}}8080{{- end -}}
{{- end -}}

{{- define "portcullis.probe" -}}
httpGet:
  path: {{ .path }}
  port: health
  scheme: HTTP
timeoutSeconds: 3
{{- end -}}
