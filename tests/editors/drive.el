;;; Drives Emacs as a person would, and writes what was to be seen.  -*- lexical-binding: t -*-

;; Run in batch mode after the user's init file; environment: DRIVE_FILE is opened, DRIVE_REPORT is the JSON file to write.

(require 'cl-lib)
(require 'json)

(defvar drive-report nil "What was seen, as an alist.")
(defconst drive-patience 30 "Seconds.")

(defun drive-note (name value) (setf (alist-get name drive-report) value))

(defun drive-wait (what met)
  "Take messages until MET returns something, and return that; WHAT is waited for."
  (let ((until (+ (float-time) drive-patience)) found)
    (while (not (setq found (funcall met)))
      (when (> (float-time) until) (error "Waited in vain for %s" what))
      (accept-process-output nil 0.01))
    found))

(defun drive-go-to (words &optional further)
  (goto-char (point-min))
  (search-forward words)
  (goto-char (+ (match-beginning 0) (or further 0))))

(defun drive-has (words)
  (save-excursion (goto-char (point-min)) (search-forward words nil t)))

(defun drive-diagnostics ()
  "The diagnostics on show.  Changes are sent and diagnostics asked for after a pause, which batch mode doesn't have."
  (eglot--signal-textDocument/didChange)
  (flymake-start)
  (flymake-diagnostics))

(defun drive-described (diagnostic)
  `((message . ,(flymake-diagnostic-text diagnostic))
    (under . ,(buffer-substring-no-properties (flymake-diagnostic-beg diagnostic) (flymake-diagnostic-end diagnostic)))))

(defun drive-open ()
  (find-file (getenv "DRIVE_FILE"))
  (run-hooks 'post-command-hook)  ; no commands run in batch mode, and `eglot-ensure' waits for the end of one
  (drive-wait "the server" #'eglot-current-server)
  (drive-note 'mode (symbol-name major-mode)))

(defun drive-diagnose ()
  (let ((found (drive-wait "a diagnostic" #'drive-diagnostics)))
    (drive-note 'diagnostics (vconcat (mapcar #'drive-described found)))))

(defun drive-fix ()
  (drive-go-to "temprature")
  (cl-letf (((symbol-function 'completing-read)
             (lambda (_prompt choices &rest _)
               (drive-note 'choices (vconcat (mapcar #'car choices)))
               (caar choices)))
            (last-nonmenu-event ?\r))  ; called by a key, not from a menu of the mouse
    (call-interactively #'eglot-code-actions))
  (drive-wait "the fix" (lambda () (drive-has "    temperature: 0")))
  (drive-wait "the end of the diagnostic" (lambda () (null (drive-diagnostics)))))

(defun drive-type ()
  (drive-go-to "Is this polite?")
  (goto-char (1- (line-end-position)))
  (insert " 😀 {")
  (let ((found (car (drive-wait "a diagnostic" #'drive-diagnostics))))
    (drive-note 'typed (drive-described found)))
  (delete-char -4)
  (drive-wait "the end of the diagnostic" (lambda () (null (drive-diagnostics)))))

(defun drive-complete ()
  (drive-go-to "depends_on: []" (length "depends_on: ["))
  (let* ((capf (run-hook-with-args-until-success 'completion-at-point-functions))
         (offers (all-completions "" (nth 2 capf))))
    (drive-note 'offers (vconcat (mapcar #'substring-no-properties offers))))
  (insert "ans")
  (completion-at-point)
  (drive-wait "the whole name" (lambda () (drive-has "depends_on: [answer]")))
  (drive-note 'completed (buffer-substring-no-properties (line-beginning-position) (line-end-position))))

(defun drive-rename ()
  (drive-go-to "id: classify" (length "id: "))
  (eglot-rename "sort")
  (drive-wait "the new name" (lambda () (drive-has "id: sort"))))

(defun drive-hover ()
  (drive-go-to "output: verdict" 1)
  (let (shown)
    (eglot-hover-eldoc-function (lambda (text &rest _) (setq shown text)))
    (drive-note 'hover (substring-no-properties (drive-wait "the hover" (lambda () shown))))))

(defun drive-run ()
  "What is shown when a run ends: eglot tells it in the echo area."
  (let* ((said nil) (listen (lambda (form &rest rest) (when form (push (apply #'format form rest) said)))))
    (drive-diagnostics)  ; what was typed last is sent
    (advice-add 'message :before listen)
    (agentloom-run-with-mock)
    (drive-note 'run (drive-wait "the end of the run"
                                 (lambda () (cl-find-if (lambda (words) (string-match-p "is done" words)) said))))
    (advice-remove 'message listen)))

(defun drive-define ()
  (drive-go-to "{state.category}" (length "{state."))
  (xref-find-definitions (thing-at-point 'symbol))
  (drive-note 'defined (buffer-substring-no-properties (line-beginning-position) (line-end-position))))

(defun drive-names (index)
  "The names in an index of Imenu, those of nested ones included."
  (mapcan (lambda (item)
            (cons (substring-no-properties (car item)) (and (consp (cdr item)) (drive-names (cdr item)))))
          index))

(defun drive-outline ()
  (drive-note 'outline (vconcat (drive-names (funcall imenu-create-index-function)))))

(defun drive ()
  (condition-case fault
      (progn
        (drive-open)
        (dolist (act (split-string (getenv "DRIVE_ACTS")))
          (drive-note 'act act)
          (funcall (intern (concat "drive-" act))))
        (eglot-shutdown (eglot-current-server)))
    (error (drive-note 'fault (error-message-string fault))))
  (drive-note 'text (buffer-substring-no-properties (point-min) (point-max)))
  (with-temp-file (getenv "DRIVE_REPORT")
    (insert (json-encode drive-report)))
  (set-buffer-modified-p nil)
  (kill-emacs 0))

(drive)
