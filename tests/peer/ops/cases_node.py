"""What Prometheus reads of a node: bcd with simulated GPUs, the kubelet's stand-in, and promtool as the judge."""

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile

from cases_health import find_promtool
from world import BCD, ROOT, World, free_port, run, wait_for

GAUGES = {"gpu_util_percent": 97, "memory_util_percent": 40, "memory_used_bytes": 64 << 30,
          "memory_free_bytes": 16 << 30, "temperature_c": 71, "memory_temperature_c": 80,
          "power_mw": 655321, "energy_mj": 123456789, "sm_clock_mhz": 1980,
          "memory_clock_mhz": 2619, "ecc_corrected_volatile": 1, "ecc_uncorrected_volatile": 0,
          "ecc_corrected_aggregate": 2, "ecc_uncorrected_aggregate": 0,
          "remapped_correctable_rows": 1, "remapped_uncorrectable_rows": 0, "pcie_replays": 3}
# In the document, and not on a machine whose GPUs are simulated.
ELSEWHERE = {"bcd_gpu_reading_age_seconds"}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("bcd", timeout=10)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(connection, method="GET", path="/metrics"):
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read().decode()
    finally:
        connection.close()


def judge(promtool, *words, text=None):
    done = subprocess.run([promtool, "check", *words], input=text, text=True, capture_output=True,
                          check=False)
    return done.returncode, done.stdout + done.stderr


def samples(text):
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
            for line in text.splitlines() if not line.startswith("#")}


def documented():
    """Every bcd_ name in the tables of docs/formats/metrics.md."""
    with open(os.path.join(ROOT, "docs/formats/metrics.md"), encoding="utf-8") as file:
        rows = [line.split("|")[1] for line in file if line.startswith("| `")]
    return {"bcd_" + name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}


# proves: OBS-14 OBS-16 OBS-20
def node_metrics(_postgres):
    """bcd's metrics are clean for promtool, are those of the document, and name the pod that has a GPU"""
    world = World().init()
    tools = tempfile.mkdtemp(prefix="bc-promtool-", dir="/tmp")
    try:
        promtool = find_promtool(tools)
        replica = world.replica("a").start()
        world.make_pool(replica)
        world.add_nodes(1, replica)
        node = world.nodes[0]
        port = free_port()
        with open(node.config, "a", encoding="utf-8") as file:
            file.write('[metrics]\nlisten = "127.0.0.1:%d"\ndcgm_names = true\n' % port)
        run(BCD, "sim", "set", "--file", node.path("gpus.toml"), "0",
            *["%s=%d" % gauge for gauge in GAUGES.items()])
        run(BCD, "sim", "set", "--file", node.path("gpus.toml"), "7", "xid=79", "recovery=reset")
        node.bcd.end()
        node.start_bcd()

        def scrape():
            try:
                return ask(http.client.HTTPConnection("127.0.0.1", port, timeout=10))[2]
            except OSError:
                return ""

        booked = replica.call("POST", "/v1/reservations", world.reservation(7))
        wait_for("the devices are offered",
                 lambda: 'bcd_devices_offered_healthy{class="gpu"} 7\n' in scrape()
                 and 'bcd_device_plugin_registered{class="gpu"} 1\n' in scrape())
        node.pod("train-0", 7)
        wait_for("the pod stands at GPU 0", lambda: re.search(
            r'\nbcd_gpu_temperature_celsius\{gpu="0",[^\n]*,allocation="alc_[^"]*",'
            r'namespace="default",pod="train-0",container="main"\} 71\n', scrape()))
        text = scrape()
        status, kind, same = ask(UnixConnection(node.path("run/metrics.sock")))
        assert status == 200 and kind.startswith("text/plain; version=0.0.4"), (status, kind)
        assert set(samples(same)) == set(samples(text))
        assert os.stat(node.path("run/metrics.sock")).st_mode & 0o777 == 0o600
        assert ask(UnixConnection(node.path("run/metrics.sock")), "POST")[0] == 405
        assert ask(UnixConnection(node.path("run/metrics.sock")), "HEAD")[2] == ""

        ours = text[:text.index("# HELP DCGM_")]
        code, said = judge(promtool, "metrics", text=ours)
        assert code == 0 and not said, said
        code, said = judge(promtool, "metrics", text=text)
        assert code in (0, 3), said  # 3: it reads them, and dislikes DCGM's names
        families = set(re.findall(r"^# TYPE (bcd_\w+)", text, re.M))
        assert families <= documented(), families - documented()
        assert documented() - families <= ELSEWHERE, documented() - families - ELSEWHERE

        found = samples(text)
        assert found["bcd_gateway_connected"] == 1 and found["bcd_gateway_configured"] == 1
        assert found['bcd_devices_present{class="gpu"}'] == 8
        assert found['bcd_devices_healthy{class="gpu"}'] == 7
        assert found['bcd_devices_bound{class="gpu"}'] == 7
        assert found["bcd_pod_list_age_seconds"] < 11, found["bcd_pod_list_age_seconds"]
        assert found["bcd_pass_duration_seconds_count"] > 3
        assert found["bcd_record_writes_total"] > 0 and not found["bcd_record_write_failures_total"]
        infos = [line for line in found if line.startswith("bcd_device_info{")]
        assert len(infos) == 8 and sum('pod="train-0"' in line for line in infos) == 7
        assert sum('reservation="%s"' % booked["id"] in line for line in infos) == 7
        assert any('cause="XID 79' in line for line in found), "why GPU 7 is unhealthy"
        assert any(line.startswith("DCGM_FI_DEV_FB_USED{") and 'pod="train-0"' in line
                   and value == 65536 for line, value in found.items())
        node.delete_pod("train-0")
        wait_for("the pod is gone", lambda: 'pod="train-0"' not in scrape())
    finally:
        world.close()
        shutil.rmtree(tools, ignore_errors=True)


# proves: OBS-20
def guide_is_valid(_postgres):
    """promtool takes the guide's scrape configuration and alerts, and they name metrics that there are"""
    tools = tempfile.mkdtemp(prefix="bc-promtool-", dir="/tmp")
    try:
        promtool = find_promtool(tools)
        with open(os.path.join(ROOT, "docs/guide/monitoring.md"), encoding="utf-8") as file:
            guide = file.read()
        blocks = re.findall(r"^```yaml\n# (\S+)\n(.*?)^```", guide, re.M | re.S)
        assert [name for name, _ in blocks] == ["prometheus.yml", "bcd-alerts.yml"], blocks
        for name, text in blocks:
            with open(os.path.join(tools, name), "w", encoding="utf-8") as file:
                file.write(text)
        code, said = judge(promtool, "config", os.path.join(tools, "prometheus.yml"))
        assert code == 0 and "7 rules found" in said, said
        questions = re.findall("`([^`]+)`", guide[guide.index("## Questions"):])
        with open(os.path.join(tools, "questions.yml"), "w", encoding="utf-8") as file:
            json.dump({"groups": [{"name": "q", "rules": [
                {"record": "q:%d" % i, "expr": expression}
                for i, expression in enumerate(questions)]}]}, file)
        code, said = judge(promtool, "rules", os.path.join(tools, "questions.yml"))
        assert code == 0 and len(questions) > 4, said
        names = set(re.findall(r"\bbcd_[a-z_]+", guide))
        assert names <= documented(), names - documented()
    finally:
        shutil.rmtree(tools, ignore_errors=True)


CASES = [node_metrics, guide_is_valid]
