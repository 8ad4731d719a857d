"""The machine as nvidia-ml-py tells it, in the form of bcd's readings: one line of JSON for each line read."""

import json
import re
import sys

import pynvml as nvml

ABSENT = {nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_NO_PERMISSION, nvml.NVML_ERROR_NOT_FOUND,
          nvml.NVML_ERROR_INVALID_ARGUMENT, nvml.NVML_ERROR_NO_DATA}
VITAL = {nvml.nvmlDeviceGetUUID, nvml.nvmlDeviceGetPowerUsage, nvml.nvmlDeviceGetClockInfo}
ACTIONS = {0: "none", 1: "reset", 2: "reboot", 3: "drain_p2p", 4: "drain_reset"}


class Gpu:
    """Asks about one GPU, and notes what was wrong."""

    def __init__(self, handle):
        self.handle, self.lost, self.needs_reset = handle, False, False

    def ask(self, function, *arguments):
        """What it returns, or None."""
        self.last = None
        if self.lost:
            return None
        try:
            answer = function(self.handle, *arguments)
            self.last = nvml.NVML_SUCCESS
            return answer
        except nvml.NVMLError as error:
            self.last = error.value
            self.judge(error.value, self.handle is None or function in VITAL)
            return None

    def judge(self, status, vital=False):
        if status == nvml.NVML_ERROR_GPU_IS_LOST:
            self.lost = True
        elif status == nvml.NVML_ERROR_RESET_REQUIRED or (status == nvml.NVML_ERROR_UNKNOWN and vital):
            self.needs_reset = True
        elif status == nvml.NVML_ERROR_UNKNOWN:
            pass  # a field that this GPU lacks
        elif status not in ABSENT and status not in (nvml.NVML_ERROR_TIMEOUT, nvml.NVML_ERROR_IRQ_ISSUE,
                                                     nvml.NVML_ERROR_CORRUPTED_INFOROM):
            raise nvml.NVMLError(status)

    def field(self, number):
        values = self.ask(nvml.nvmlDeviceGetFieldValues, [number])
        if not values:
            return None
        if values[0].nvmlReturn != nvml.NVML_SUCCESS:
            self.judge(values[0].nvmlReturn)
            return None
        return values[0].value.uiVal


def pci(text):
    domain, bus, device = re.fullmatch(r"([0-9A-F]+):([0-9A-F]+):([0-9A-F]+)\.0", text).groups()
    return "%04x:%s:%s.0" % (int(domain, 16), bus.lower(), device.lower())


def mig(gpu, handle, total):
    profile = nvml.nvmlDeviceGetName(handle).partition(" MIG ")[2]
    instance = {"gi": nvml.nvmlDeviceGetGpuInstanceId(handle), "ci": nvml.nvmlDeviceGetComputeInstanceId(handle),
                "profile": profile, "uuid": nvml.nvmlDeviceGetUUID(handle)}
    attributes = nvml.nvmlDeviceGetAttributes(handle)
    instance["memory_bytes"] = attributes.memorySizeMB << 20
    try:
        whole = nvml.nvmlDeviceGetGpuInstanceById(gpu.handle, instance["gi"])
        place = nvml.nvmlGpuInstanceGetInfo(whole).placement
        start, size = place.start, place.size
        slices = round(total * size / instance["memory_bytes"] / 4) * 4
        instance["start"], instance["size"] = start * 8 // slices, size * 8 // slices
    except nvml.NVMLError as error:
        assert error.value in ABSENT
    return instance


def migs(gpu, total):
    found = []
    for index in range(gpu.ask(nvml.nvmlDeviceGetMaxMigDeviceCount) or 0):
        try:
            found.append(mig(gpu, nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu.handle, index), total))
        except nvml.NVMLError as error:
            assert error.value in ABSENT
    return found


def signed(celsius):
    """Below zero it wraps: NVML's type has no sign."""
    return celsius - (1 << 32) if celsius is not None and celsius >> 31 else celsius


def gauges(gpu, told):
    ecc = [(kind, span) for span in (nvml.NVML_VOLATILE_ECC, nvml.NVML_AGGREGATE_ECC)
           for kind in (nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED)]
    for (kind, span), name in zip(ecc, ("ecc_corrected_volatile", "ecc_uncorrected_volatile",
                                        "ecc_corrected_aggregate", "ecc_uncorrected_aggregate")):
        told[name] = gpu.ask(nvml.nvmlDeviceGetTotalEccErrors, kind, span)
    utilization = gpu.ask(nvml.nvmlDeviceGetUtilizationRates)
    if utilization:
        told["gpu_util_percent"], told["memory_util_percent"] = utilization.gpu, utilization.memory
    told["temperature_c"] = signed(gpu.ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU))
    told["memory_temperature_c"] = signed(gpu.field(nvml.NVML_FI_DEV_MEMORY_TEMP))
    told["power_mw"] = gpu.ask(nvml.nvmlDeviceGetPowerUsage)
    told["energy_mj"] = gpu.ask(nvml.nvmlDeviceGetTotalEnergyConsumption)
    told["sm_clock_mhz"] = gpu.ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM)
    told["memory_clock_mhz"] = gpu.ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_MEM)
    told["pcie_replays"] = gpu.ask(nvml.nvmlDeviceGetPcieReplayCounter)


def read_gpu(gpu):
    told, numbers = {"mig": [], "row_remap": "none", "recovery": "unknown"}, {}
    uuid = gpu.ask(nvml.nvmlDeviceGetUUID)
    told["uuid"] = uuid and uuid.removeprefix("GPU-")
    place = gpu.ask(nvml.nvmlDeviceGetPciInfo)
    told["pci"] = place and pci(place.busId)
    told["model"] = gpu.ask(nvml.nvmlDeviceGetName)
    told["minor"] = gpu.ask(nvml.nvmlDeviceGetMinorNumber)
    memory = gpu.ask(nvml.nvmlDeviceGetMemoryInfo, nvml.nvmlMemory_v2)
    if memory:
        told["memory_bytes"] = memory.total
        numbers["memory_used_bytes"], numbers["memory_free_bytes"] = memory.used, memory.free
    mode = gpu.ask(nvml.nvmlDeviceGetMigMode)
    if gpu.last in (nvml.NVML_SUCCESS, nvml.NVML_ERROR_NOT_SUPPORTED):
        told["mig_capable"] = gpu.last == nvml.NVML_SUCCESS
    compute = gpu.ask(nvml.nvmlDeviceGetCudaComputeCapability)
    if compute:
        told["compute_major"], told["compute_minor"] = compute
    if mode and mode[0]:
        told["mig_enabled"], told["mig"] = True, migs(gpu, told.get("memory_bytes"))
    rows = gpu.ask(nvml.nvmlDeviceGetRemappedRows)
    if rows:
        numbers["remapped_correctable_rows"], numbers["remapped_uncorrectable_rows"] = rows[0], rows[1]
        told["row_remap"] = "failed" if rows[3] else "pending" if rows[2] else "none"
    gauges(gpu, numbers)
    told["ecc_uncorrectable"] = numbers["ecc_uncorrected_volatile"] or None
    action = gpu.field(nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION)
    if action is not None:
        told["recovery"] = ACTIONS[action]
    told["lost"], told["needs_reset"] = gpu.lost or None, gpu.needs_reset or None
    told["gauges"] = {name: value for name, value in numbers.items() if value is not None}
    return {name: value for name, value in told.items() if value is not None}


def read_index(index):
    gpu = Gpu(None)
    gpu.handle = gpu.ask(lambda _: nvml.nvmlDeviceGetHandleByIndex(index))
    return read_gpu(gpu) if gpu.handle else {
        name: value for name, value in (("lost", gpu.lost), ("needs_reset", gpu.needs_reset)) if value} | {
            "mig": [], "gauges": {}, "row_remap": "none", "recovery": "unknown"}


def main():
    nvml.nvmlInit()
    for _ in sys.stdin:
        reading = {"source": "nvml", "driver": nvml.nvmlSystemGetDriverVersion(),
                   "gpus": [read_index(index) for index in range(nvml.nvmlDeviceGetCount())]}
        print(json.dumps(reading), flush=True)


main()
