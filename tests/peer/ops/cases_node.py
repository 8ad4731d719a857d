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
from world import BCD, BUILD, ROOT, Process, World, own_port, run, wait_for

GAUGES = {"gpu_util_percent": 97, "memory_util_percent": 40, "memory_used_bytes": 64 << 30,
          "memory_free_bytes": 16 << 30, "temperature_c": 71, "memory_temperature_c": 80,
          "power_mw": 655321, "energy_mj": 123456789, "sm_clock_mhz": 1980,
          "memory_clock_mhz": 2619, "ecc_corrected_volatile": 1, "ecc_uncorrected_volatile": 0,
          "ecc_corrected_aggregate": 2, "ecc_uncorrected_aggregate": 0,
          "remapped_correctable_rows": 1, "remapped_uncorrectable_rows": 0, "pcie_replays": 3}
# In the document, and not on a machine whose GPUs are simulated.
ELSEWHERE = {"bcd_gpu_reading_age_seconds"}


FAKE_DRIVER = os.path.join(BUILD, "tests/fakedriver")


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
    try:
        promtool = find_promtool()
        replica = world.replica("a").start()
        world.make_pool(replica)
        world.add_nodes(1, replica)
        node = world.nodes[0]
        port = own_port()
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


def machine(**changes):
    """What the made up driver says: one GPU that tells all, one that tells little."""
    gpu = dict(GAUGES, uuid="GPU-5a1c0de0-0000-4000-8000-000000000000", pci="00000000:1A:00.0",
               minor=3, name="NVIDIA H100 80GB HBM3", memory_total_bytes=80 << 30, mig_mode=0,
               ecc_mode=1, remap_pending=1, remap_failure=0, recovery=0)
    poor = {"uuid": "GPU-5a1c0de0-0000-4000-8000-000000000001", "pci": "00000000:2A:00.0",
            "minor": 0, "name": "NVIDIA GeForce", "memory_total_bytes": 8 << 30,
            "temperature_c": 40, "power_mw": "NO_PERMISSION"}
    return dict({"driver": "570.124.06", "cuda": "12.8", "gpus": [gpu, poor]}, **changes)


class Machine:
    """bcd on a machine with a driver that is made up (tests/fakedriver); no control plane, no kubelet."""

    def __init__(self, folder, source):
        self.folder = folder
        for name in ("kubelet", "cdi", "sys"):
            os.makedirs(os.path.join(folder, name))
        self.drive(machine())
        with open(self.path("config.toml"), "w", encoding="utf-8") as file:
            file.write("""[paths]
data = "{0}/data"
run = "{0}/run"
kubelet = "{0}/kubelet"
cdi = "{0}/cdi"
sys = "{0}/sys"
[gpu]
source = "{1}"
kernel_log = ""
nvml_library = "{2}/libnvidia-ml.so.1"
nvidia_smi = "{2}/nvidia-smi"
""".format(folder, source, FAKE_DRIVER))
        self.bcd = Process(self.path("bcd.log"), BCD, "--config", self.path("config.toml"), "node",
                           env={"FAKE_DRIVER": self.path("driver.json")})

    def path(self, name):
        return os.path.join(self.folder, name)

    def drive(self, what):
        with open(self.path("driver.new"), "w", encoding="utf-8") as file:
            json.dump(what, file)
        os.rename(self.path("driver.new"), self.path("driver.json"))

    def scrape(self):
        try:
            return ask(UnixConnection(self.path("run/metrics.sock")))[2]
        except OSError:
            return ""

    def figures(self):
        """GPU 0's samples, by name and what the labels of all GPUs don't say."""
        return {re.sub(r'\{.*,container=""(.*)\}', r"{\1}", line): value
                for line, value in samples(self.scrape()).items()
                if line.startswith("bcd_gpu_") and 'gpu="0"' in line}


# proves: OBS-14
def driver_metrics(_postgres):
    """what a driver measures stands in the metrics, the same from NVML and nvidia-smi, until it can't be asked"""
    folder = tempfile.mkdtemp(prefix="bc-ops-", dir="/tmp")
    machines = []
    try:
        machines = [Machine(os.path.join(folder, source), source)
                    for source in ("nvml", "nvidia-smi")]
        nvml, smi = machines
        for one in machines:
            wait_for("figures", lambda: "bcd_gpu_temperature_celsius{" in one.scrape())
        found = nvml.figures()
        for name, value in {"gpu_utilization_ratio": 0.97, "gpu_power_watts": 655.321,
                            "gpu_memory_used_bytes": 64 << 30, "gpu_sm_clock_hertz": 1980e6,
                            "gpu_energy_joules_total": 123456.789, "gpu_pcie_replays_total": 3,
                            "gpu_row_remap_pending": 1, "gpu_xid_last": 0}.items():
            assert found["bcd_%s{}" % name] == value, (name, found)
        assert found['bcd_gpu_ecc_errors_total{,kind="corrected",count="aggregate"}'] == 2, found
        assert found['bcd_gpu_recovery_action{,action="none"}'] == 1, found
        told = smi.figures()
        assert set(found) - set(told) <= {"bcd_gpu_energy_joules_total{}"}, set(found) ^ set(told)
        # nvidia-smi prints power in hundredths of a watt and memory in MiB.
        assert all(abs(value - found[name]) <= 0.01 for name, value in told.items()), (told, found)
        text = nvml.scrape()
        assert ',source="nvml",driver="570.124.06"} 1' in text
        assert ',source="nvidia-smi",driver="570.124.06"} 1' in smi.scrape()
        assert "bcd_gpu_reading_age_seconds" in text and "bcd_gpu_reading_failures_total 0" in text
        poor = [line for line in samples(text) if 'gpu="1"' in line]
        assert any(line.startswith("bcd_gpu_temperature_celsius{") for line in poor), poor
        assert not any(line.startswith(("bcd_gpu_power", "bcd_gpu_ecc")) for line in poor), poor
        with open(nvml.path("driver.json.events"), "a", encoding="ascii") as file:
            file.write("31 00000000:1A:00.0\n79 00000000:1A:00.0\n")
        wait_for("the XIDs", lambda: nvml.figures().get("bcd_gpu_xid_last{}") == 79
                 and nvml.figures().get('bcd_gpu_xid_active{,xid="79"}') == 1)
        assert nvml.figures()["bcd_gpu_healthy{}"] == 0
        nvml.drive(machine(generation=1, init="LIB_RM_VERSION_MISMATCH"))
        wait_for("the driver can't be asked", lambda: "\nbcd_gpus_readable 0\n" in nvml.scrape())
        text = nvml.scrape()
        assert "bcd_gpu_temperature_celsius{" not in text and "bcd_gpu_reading_age_seconds" in text
        assert samples(text)["bcd_gpu_reading_failures_total"] >= 1
        nvml.drive(machine(generation=2))
        wait_for("it answers again", lambda: "bcd_gpu_temperature_celsius{" in nvml.scrape())
    finally:
        for one in machines:
            one.bcd.end()
        shutil.rmtree(folder, ignore_errors=True)


# proves: OBS-20
def guide_is_valid(_postgres):
    """promtool takes the guide's scrape configuration and alerts, and they name metrics that there are"""
    tools = tempfile.mkdtemp(prefix="bc-promtool-", dir="/tmp")
    try:
        promtool = find_promtool()
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


CASES = [node_metrics, driver_metrics, guide_is_valid]
