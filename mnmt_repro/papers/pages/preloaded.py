"""Kernels forked from one process that has imported what the pages import, which takes seconds."""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

PROVISIONER = "mnmt-repro-preloaded"
"""Entry point of `ForkedProvisioner`, by which Jupyter finds it."""

_ROOMS = ("effects", "claims", "charts")


def use_forked_kernels() -> None:
    """Let Jupyter fork the kernels that this process starts, where the system can fork."""
    if "forkserver" in multiprocessing.get_all_start_methods():
        KernelProvisionerFactory.instance().default_provisioner_name = PROVISIONER


class ForkedProvisioner(LocalProvisioner):
    """Starts a kernel as a fork of a server process; the rest is Jupyter's own."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Fork a kernel with the arguments of `cmd` that follow the name of its module."""
        rooms = [import_module(f"mnmt_repro.papers.{name}") for name in _ROOMS]
        modules = [
            module.name
            for room in rooms
            for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}.")
        ]
        context = multiprocessing.get_context("forkserver")
        others = ["__main__", __name__, "ipykernel.kernelapp", "IPython.display"]
        context.set_forkserver_preload([*others, *modules])
        given = (cmd[cmd.index("-f") :], os.fspath(kwargs.get("cwd") or os.getcwd()), kwargs["env"])
        process = context.Process(target=_kernel, args=given)
        process.start()
        self.process = _Popen(process)  # type: ignore[assignment]
        self.pid = process.pid
        return self.connection_info


@dataclass(frozen=True)
class _Popen:
    """A process of multiprocessing, with the names of `subprocess.Popen` that Jupyter uses."""

    process: Any
    stdin: None = None
    stdout: None = None
    stderr: None = None

    def poll(self) -> int | None:
        code: int | None = self.process.exitcode
        return code

    def wait(self) -> int | None:
        self.process.join()
        return self.poll()

    def send_signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.process.kill()

    def terminate(self) -> None:
        self.process.terminate()


def _kernel(arguments: Sequence[str], folder: str, environment: dict[str, str]) -> None:
    from ipykernel.kernelapp import IPKernelApp

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    IPKernelApp.launch_instance(list(arguments))
