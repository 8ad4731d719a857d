"""guards: what keeps the product from harm, and how each is taken out.

A mutant is a name, changes of source files (file, text, what stands there instead), and the run that notices it soonest.
"""

# The runs (`sim --help`), which end with the first seed that is broken: long enough that one which finds a mutant in a seed of
# a hundred finds it whatever else changes.
SEEDS = "--seeds 900"
LONG = "--seeds 450 --steps 2500"
SOCKETS = "--seeds 300 --steps 1500 --sockets"
RESTORES = "--seeds 300 --steps 1500 --restores --sockets"
IN_POD = "--seeds 450 --steps 1000 --kubelets --in-pod"
KUBELETS = "--seeds 300 --steps 1000 --kubelets"
VANISH = "--seeds 800 --steps 4000 --kubelets --in-pod --vanish"
CLOCKS = "--seeds 600 --clocks"
LOST = "--seeds 400 --steps 2500 --lost"
FLEET = "--fleet --nodes 20 --days 2"
BIND, RELEASE = "--effects bind", "--effects release"
STATEMENTS = "--effects release --statements"
STORY = "--story"

MUTANTS = [
    ("no-fsync", [
        ("src/sys/durable.c",
         " && fsync(fd) == 0;", ";"),
    ]),
    ("no-folder-sync", [
        ("src/sys/durable.c",
         "\tif (fsync(fd) < 0)\n\t\treturn error_os(error, \"sync folder '%s'\", folder);\n", ""),
    ]),
    ("report-before-withdrawal", [
        ("src/node/core/release.c",
         "\tif (view->bound)\n\t\treturn (struct release_plan){.step = RELEASE_WITHDRAW,",
         "\tif (view->bound && !view->reported)\n"
         "\t\treturn (struct release_plan){.step = RELEASE_REPORT, .why = \"mutant\"};\n"
         "\tif (view->bound)\n\t\treturn (struct release_plan){.step = RELEASE_WITHDRAW,"),
        ("src/node/converge.c",
         "\t\tdurable_steps_remove(&pass->steps, path);\n\t}\n\tfor (", "\t}\n\tfor ("),
    ]),
    ("unreadable-pod-resources-taken-as-empty", [
        ("src/node/release.c",
         "\tnode->answered_how = RELEASE_ANSWER_FAILED;\n",
         "\tholders_listing_deinit(&node->listing);\n\tnode->listing = (struct holders_listing){0};\n"
         "\tnode->answered_how = RELEASE_ANSWER_FREE;\n"),
    ], LONG),
    ("stale-generation-accepted", [
        ("src/node/core/spec.c",
         "next->generation > stored->generation;", "next->generation != stored->generation;"),
    ]),
    ("acknowledged-before-the-commit", [
        ("src/serve/gateway_pump.c",
         "\tstream->working = true;\n\treturn true;\n",
         "\tstream->working = true;\n"
         "\tif (kind == STREAM_JOB_REPORT) {\n"
         "\t\tCLEANUP(buf) struct buf ack = {0};\n\t\tstruct error error;\n"
         "\t\tif (wire_pack_ack(up->report->sequence, &ack, &error))\n"
         "\t\t\trpc_send(stream->call, ack.data, ack.length);\n"
         "\t}\n\treturn true;\n"),
    ]),
    ("withdrawn-before-the-record", [
        ("src/node/converge.c",
         "\tplan_releases(pass, &plan);\n\tplan_withdrawals(pass, &plan);\n",
         "\tplan_withdrawals(pass, &plan);\n\tplan_releases(pass, &plan);\n"),
    ], RELEASE),
    ("answers-from-before-the-withdrawal-count", [
        ("src/node/core/release.c",
         "\tif (view->answer != RELEASE_ANSWER_NONE &&\n\t    !release_counts(evidence_from(view), view->answered))\n",
         "\tif (view->answer != RELEASE_ANSWER_NONE && view->answered.ms < 0)\n"),
    ]),
    ("bound-while-a-release-is-pending", [
        ("src/node/core/converge.c",
         "\tif (stray)\n\t\treturn stray->who;\n\tfor (size_t i = 0; i < view->releases->entries.count; i++) {\n",
         "\t(void)stray;\n\tfor (size_t i = view->releases->entries.count; i < view->releases->entries.count; i++) {\n"),
    ], LONG),
    ("pods-of-an-earlier-life-not-counted", [
        ("src/node/core/strays.c",
         "\tstray.anything = !holds_id_atom(holder->id, &stray.atom);\n",
         "\tstray.anything = !holds_id_atom(holder->id, &stray.atom);\n\treturn;\n"),
    ], LONG),
    ("bound-before-anybody-was-asked", [
        ("src/node/core/strays.c",
         "\tif (strays->unknown)\n\t\treturn false;\n", ""),
        ("src/node/core/strays.c",
         "\t\tif (!view->gpus[i].looked)\n", "\t\tif (view->gpu_count > 1000000)\n"),
    ], LOST, LONG),
    ("processes-of-an-earlier-life-not-counted", [
        ("src/node/core/strays.c",
         "\tif (outside_has_gpu(&live, process->gpu) || is_listed(view, process))\n",
         "\tif (view->process_count > 0)\n"),
    ], LOST),
    ("processes-that-outlive-their-pods-not-counted", [
        ("src/node/release.c",
         "\tif (podprocesses_find(answer, uuid))\n\t\treturn RELEASE_ANSWER_OPEN;\n", ""),
    ], KUBELETS, LOST),
    ("pods-that-live-on-with-nothing-open-not-counted", [
        ("src/node/release.c",
         "\t\telse if (pod->pid)\n\t\t\tworst = RELEASE_ANSWER_ALIVE;\n", ""),
    ]),
    ("processes-that-could-not-be-looked-at-taken-as-none", [
        ("src/node/release.c",
         "\tif (answer->error.code != ERROR_NONE)\n\t\treturn RELEASE_ANSWER_UNSEEN;\n", ""),
        ("src/node/release.c",
         "\tif (pods.count > 0 && !answer->off && answer->error.code != ERROR_NONE)\n"
         "\t\tworst = RELEASE_ANSWER_UNSEEN;\n", ""),
        ("src/node/release.c",
         "\t\tif (!pod)\n\t\t\tworst = RELEASE_ANSWER_UNSEEN; /* it was asked before this was known */\n"
         "\t\telse if (pod->pid)\n", "\t\tif (pod && pod->pid)\n"),
    ], LOST, LONG),
    ("a-spec-that-could-not-be-stored-forgotten", [
        ("src/node/records.c",
         "\t\tuplink_return(node->uplink, write->spec ? TAKE(write->spec) : TAKE(write->again),\n"
         "\t\t\t      &write->certificate);\n", "\t\t;\n"),
    ], RELEASE),
    ("nobody-hears-that-nothing-can-be-recorded", [
        ("src/node/report.c",
         "\t\t.write_error = records_trouble(node, now),\n", ""),
    ], RELEASE),
    ("nobody-hears-that-the-kubelet-cannot-be-told", [
        ("src/node/report.c",
         "\t\t.plugin_error = plugin_error(node, now, &plugin_ms, &texts),\n", ""),
    ], BIND),
    ("a-record-that-cannot-be-looked-at-taken-as-absent", [
        ("src/sys/durable_read.c",
         "\treturn errno == ENOENT || errno == ENOTDIR || error_os(error, \"stat '%s'\", path);\n",
         "\treturn true;\n"),
    ], RELEASE),
    ("told-only-on-a-disk-with-room", [
        ("src/node/report.c",
         "\tsend_report(node, &report);\n\tnode->conditions_untold = false;\n", ""),
    ], RELEASE),
    ("refused-for-a-marker-that-was-not-seen", [
        ("src/node/records.c",
         "\t\ttrouble(node, &node->marker_error);\n\t\treturn false;\n", ""),
    ], BIND),
    ("a-socket-name-twice", [
        ("src/node/deviceplugin.c",
         "\trandom_bytes(&random, sizeof random);\n", "\trandom = 7;\n"),
    ], SOCKETS),
    ("acted-on-before-it-is-stored", [
        ("src/node/converge.c",
         "\tnode->write.spec = spec;\n\tstep_spec(&steps, node, spec);\n",
         "\tnode->write.spec = spec;\n"),
    ]),
    ("deleted-whoever-has-the-name", [
        ("src/node/reaper.c",
         "\t\t.uid = what->uid,\n\t\t.grace_period_s", "\t\t.grace_period_s"),
    ]),
    ("deleted-for-what-is-bound", [
        ("src/node/core/reap.c",
         "(!view->bound_known || is_bound(view, holder->allocation))", "!view->bound_known"),
    ]),
    ("forced-at-once", [
        ("src/node/core/reap.c",
         "return mono_after(later ? claimant->last_unlisted : claimant->asked, REAP_FORCE_MS);",
         "return later ? claimant->last_unlisted : claimant->asked;"),
    ]),
    ("what-only-the-checkpoint-names-counts-for-nothing", [
        ("src/node/holders_read.c",
         "\tif (seen && durable_absent(buf_text(&folder)))", "\tif (durable_absent(buf_text(&folder)))"),
    ], IN_POD),
    ("nor-on-a-machine", [
        ("src/node/holders_read.c",
         "\tif (seen && durable_absent(buf_text(&folder)))", "\tif (seen)"),
    ], KUBELETS),
    ("a-kubelet-that-heard-of-nobody-counts", [
        ("src/node/unlisted.c",
         "release_counts(node->kubelet_since, node->listed_at) &&\n"
         "\t    unlisted_heard(&node->listing.names, pods, count))\n",
         "release_counts(node->kubelet_since, node->listed_at))\n"),
    ], IN_POD),
    ("a-mirrors-deletion-is-its-pods", [
        ("src/node/core/unlisted.c",
         "\t\t\tlearn(mirrored, listed, true, asked, now);\n",
         "\t\t\tlearn(mirrored, listed, false, asked, now);\n"),
        ("src/node/core/unlisted.c",
         "\t\thear(mirrored, listed, true, deleted, now);\n", "\t\thear(mirrored, listed, false, deleted, now);\n"),
        ("src/node/core/unlisted.c",
         "\treturn mono_later(deleted, vanished);\n", "\treturn deleted;\n"),
    ], IN_POD),
    ("an-object-that-was-deleted-is-over", [
        ("src/node/core/unlisted.c",
         "\thear(pod, listed, false, deleted, now);\n",
         "\thear(pod, listed, false, deleted, now);\n\tpod->over |= deleted;\n"),
    ], IN_POD),
    ("an-events-word-is-anybodys", [
        ("src/node/core/unlisted.c",
         "\tforget_words(words, now);\n\tif (mirrored &&",
         "\tif (!pod && unlisted->count > 0)\n\t\tpod = &unlisted->items[0];\n"
         "\tforget_words(words, now);\n\tif (mirrored &&"),
    ], IN_POD),
    ("a-kubelet-needs-no-time", [
        ("src/node/core/unlisted.c",
         "\t\tuntil = mono_later(until, mono_after(heard, UNLISTED_KUBELET_MS));\n", "\t\t;\n"),
    ], VANISH),
    ("times-of-an-earlier-boot-count", [
        ("src/node/unlisted.c",
         "\tbool this_boot = str_equal(node->releases.users_boot_id, node->boot_id);\n",
         "\tbool this_boot = true;\n"),
    ], VANISH),
    ("a-grace-that-nobody-told-is-short", [
        ("src/node/core/unlisted.c",
         "pod->grace_s : UNLISTED_UNKNOWN_S;\n\tstruct mono", "pod->grace_s : 1;\n\tstruct mono"),
    ], VANISH),
    ("a-grace-of-nothing", [
        ("src/node/core/unlisted.c",
         "\treturn mono_after(from, seconds * 1000 + UNLISTED_MARGIN_MS);\n",
         "\treturn mono_after(from, seconds * 0 + UNLISTED_MARGIN_MS);\n"),
    ], IN_POD),
    ("a-deletion-was-heard-of", [
        ("src/node/core/unlisted.c",
         "\treturn mono_later(deleted, vanished);\n", "\treturn deleted;\n"),
    ], STORY),
    ("nothing-beyond-the-grace", [
        ("src/node/core/unlisted.c",
         "\treturn mono_after(from, seconds * 1000 + UNLISTED_MARGIN_MS);\n",
         "\treturn mono_after(from, seconds * 1000);\n"),
    ], IN_POD),
    ("over-while-its-containers-run", [
        ("src/kube/core/pod.c",
         "!one_runs(json_object_get(status, \"containerStatuses\")) &&", ""),
    ], IN_POD),
    ("a-lost-record-named-nobody", [
        ("src/node/release.c",
         "\tif (answer == RELEASE_ANSWER_FREE && node->marker && node->blind)\n"
         "\t\treturn RELEASE_ANSWER_UNSURE;\n", ""),
        ("src/node/core/outside.c",
         "\treturn !view->blind ||\n", "\treturn !view->blind || view->worker ||\n"),
    ], VANISH),
    ("who-had-devices-is-forgotten-by-a-restart", [
        ("src/node/unlisted.c",
         "\t\tif (this_boot) {\n", "\t\tif (!node) {\n"),
    ], IN_POD),
    ("forced-while-only-the-checkpoint-names-it", [
        ("src/node/reaper.c",
         "\t\t\t.unlisted = holder->unlisted,\n", ""),
    ], IN_POD),
    ("processes-that-cant-be-seen-are-waited-for", [
        ("src/node/release.c",
         "\tif (answer->off)\n\t\treturn RELEASE_ANSWER_FREE;\n", ""),
    ], IN_POD),
    ("the-kubelet-never-writes-its-checkpoint-anew", [
        ("src/node/release.c",
         "\t\tdeviceplugin_changed(node->plugins[i]);\n", "\t\t;\n"),
    ]),
    ("billed-past-the-end", [
        ("src/control/core/metering.c",
         "int64_t stopped_ms = now_ms < end_ms ? now_ms : end_ms;", "int64_t stopped_ms = now_ms;"),
    ]),
    ("forgotten-before-it-is-acknowledged", [
        ("src/node/core/release.c",
         "\tif (view->reported)\n\t\treturn (struct release_plan){.step = RELEASE_DONE, .why = \"released\"};\n",
         "\tif (view->reported || view->answer == RELEASE_ANSWER_FREE)\n"
         "\t\treturn (struct release_plan){.step = RELEASE_DONE, .why = \"released\"};\n"),
    ]),
    ("a-lease-of-a-time-to-come-is-believed", [
        ("src/control/lead.c",
         " || left_ms > CONTROL_LEASE_MS;", ";"),
    ], CLOCKS),
    ("nobody-hears-of-a-database-that-fails", [
        ("src/serve/outward.c",
         "\t\tlog_error(\"database.failed\", error->what, kind, who, NULL);\n", "\t\t;\n"),
    ], STATEMENTS),
    ("a-report-counts-twice", [
        ("src/control/report.c",
         "\tif (report->sequence <= node.acknowledged)\n\t\treturn true;\n", ""),
    ], SEEDS),
    ("a-release-of-any-generation-counts", [
        ("src/control/core/reservation.c",
         "\t       report_generation >= withdrawn_generation;", "\t       report_generation >= 0;"),
    ]),
    ("bound-ends-a-release", [
        ("src/control/allocation.c",
         "WHEN state = 'placed' THEN 'bound' ELSE state END", "WHEN state = 'placed' THEN 'bound' ELSE 'bound' END"),
    ]),
    ("free-before-the-node-says-so", [
        ("src/control/allocation.c",
         "\tif (!sent && allocation->bound_ms == 0)\n", "\tif (allocation->bound_ms == 0)\n"),
    ]),
    ("not-held-while-it-is-released", [
        ("src/control/allocation.c",
         "\tif (!booked_next && !store_exec(db, \"UPDATE bookings SET held = 1",
         "\tif (false && !store_exec(db, \"UPDATE bookings SET held = 1"),
    ]),
    ("carried-into-the-next-booking", [
        ("src/control/core/stuck.c",
         "\tif (view->booked_next) {\n", "\tif (view->booked_next && view->booked_to_ms < 0) {\n"),
    ]),
    ("ended-an-hour-after-its-end", [
        ("src/control/core/stuck.c",
         "view->own_end_ms + STUCK_MAX_CARRY_MS;", "view->own_end_ms + STUCK_MAX_CARRY_MS / 24;"),
    ]),
    ("placed-where-nothing-may-be-placed", [
        ("src/control/core/node_conditions.c",
         "return TYPES[i].no_schedule && !tenant_controlled;", "return false;"),
    ]),
    ("placed-on-a-sick-gpu", [
        ("src/control/core/device_choice.c",
         "!(atom->healthy && gpu->healthy)", "atom->gpu > 1000000"),
    ]),
    ("the-spec-waits-for-nothing", [
        ("src/control/spec.c",
         "AND state = 'releasing' \"", "AND state = 'gone' \""),
    ]),
]
