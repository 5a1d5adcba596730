{{/* What the pods of the controller and of the CronJob have in common. */}}

{{- define "kfleet.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Argument: (list . component) */}}
{{- define "kfleet.podMetadata" -}}
{{- $ := index . 0 -}}
labels: {app.kubernetes.io/name: kfleet, app.kubernetes.io/component: {{ index . 1 }}}
annotations:
  # A new source starts new pods.
  checksum/source: {{ toJson $.Values.source | sha256sum }}
  {{- with $.Values.podAnnotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "kfleet.podSpec" -}}
serviceAccountName: kfleet
automountServiceAccountToken: true
# Time to finish the writes that were sent and to release the lease.
terminationGracePeriodSeconds: 60
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 0 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 0 }}
{{- end }}
volumes:
- name: cache
  emptyDir: {sizeLimit: 1Gi}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
- name: git
  secret: {secretName: {{ .Values.gitSecret }}, optional: true, defaultMode: 0440}
{{- if and .Values.webhook.create (eq .Values.mode "controller") }}
- name: webhook
  secret: {secretName: {{ .Values.webhook.secret }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{- define "kfleet.container" -}}
image: {{ include "kfleet.image" . | quote }}
{{- with .Values.image.pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
envFrom:
- configMapRef: {name: kfleet-source}
env:
- {name: HOME, value: /etc/kfleet/git}
- {name: XDG_CACHE_HOME, value: /cache}
- name: GIT_SSH_COMMAND
  value: >-
    ssh -o BatchMode=yes -o ConnectTimeout=60 -o ServerAliveInterval=20 -o IdentitiesOnly=yes -i /etc/kfleet/git/ssh-privatekey
    -o UserKnownHostsFile=/etc/kfleet/git/known_hosts
resources: {{- toYaml .Values.resources | nindent 2 }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
- {name: cache, mountPath: /cache}
- {name: tmp, mountPath: /tmp}
- {name: git, mountPath: /etc/kfleet/git, readOnly: true}
{{- if and .Values.webhook.create (eq .Values.mode "controller") }}
- {name: webhook, mountPath: /etc/kfleet/webhook, readOnly: true}
{{- end }}
{{- end }}

{{- define "kfleet.sourceArgs" -}}
- --repo=$(KFLEET_REPO)
- --revision=$(KFLEET_REVISION)
- --path=$(KFLEET_PATH)
- --overlay=$(KFLEET_OVERLAY)
{{- end }}
