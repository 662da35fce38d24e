"""Stands in for the package eth_account where it is not installed: viem signs, in a process of Node."""

import json
import pathlib
import subprocess

SIGNER = pathlib.Path(__file__).with_name("sign-typed-data.ts")


def _asked(question):
    done = subprocess.run(["node", SIGNER], input=json.dumps(question), capture_output=True, check=True, text=True)
    return json.loads(done.stdout)


class Signed:
    def __init__(self, signature):
        self.signature = bytes.fromhex(signature[2:])


class Account:
    def __init__(self, key):
        self._key = key
        self.address = _asked({"key": key})["address"]

    @classmethod
    def from_key(cls, key):
        return cls(key)

    def sign_typed_data(self, domain_data, message_types, message_data):
        message = {name: "0x" + value.hex() if isinstance(value, bytes) else value for name, value in message_data.items()}
        question = {"key": self._key, "domain": domain_data, "types": message_types, "message": message}
        return Signed(_asked(question)["signature"])
