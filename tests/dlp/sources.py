"""Public packages at fixed versions, and the values in them."""

import ast
import importlib
import io
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

PYPI = {"python-stdnum": "2.2", "phonenumbers": "9.0.43", "schwifty": "2026.10.1", "botocore": "1.40.0", "django": "5.2", "PyGithub": "2.6.1"}
NPM = {"@octokit/webhooks-examples": "7.6.1", "webpack": "5.99.0"}


class Packages:
    """A folder of unpacked packages; what it lacks is fetched through pip and npm."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def pypi(self, name):
        version = PYPI[name]
        target = self.folder / f"{name}-{version}"
        if not target.exists():
            fetched = self.folder / "fetched" / name
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:",
                       "--dest", str(fetched), f"{name}=={version}"]
            subprocess.run(command, check=True)
            self._unpack(next(fetched.iterdir()), target)
        return next(target.iterdir())

    def npm(self, name):
        version = NPM[name]
        target = self.folder / f"{name.replace('/', '+')}-{version}"
        if not target.exists():
            fetched = self.folder / "fetched" / name.replace("/", "+")
            fetched.mkdir(parents=True, exist_ok=True)
            subprocess.run(["npm", "pack", "--silent", f"{name}@{version}"], cwd=fetched, check=True,
                           stdout=subprocess.DEVNULL)
            self._unpack(next(fetched.iterdir()), target)
        return target / "package"

    @staticmethod
    def _unpack(archive, target):
        target.mkdir()
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(target)
        else:
            with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as packed:
                packed.extractall(target, filter="data")


def texts_in(source):
    """String literals of doctests, also lines of multi-line ones."""
    for literal in re.findall(r"'''(.*?)'''", source, re.S):
        for line in literal.splitlines():
            yield line.replace("...", "", 1).strip()
    for line in source.splitlines():
        if line.lstrip().startswith(">>>"):
            for literal in re.findall(r"'(?:[^'\\]|\\.)*'", line):
                try:
                    yield str(ast.literal_eval(literal))
                except (SyntaxError, ValueError):
                    continue


def standard_numbers(packages, modules):
    """(module, value, is it valid) of the doctests of python-stdnum, which has validators in Python."""
    root = packages.pypi("python-stdnum")
    sys.path.insert(0, str(root))
    for name in modules:
        module = importlib.import_module(f"stdnum.{name}")
        source = module.__doc__ or ""
        tests = root / "tests" / f"test_{name.replace('_.', '_').replace('.', '_')}.doctest"
        for path in (tests, root / "tests" / f"test_{name.replace('.', '_')}.doctest"):
            if path.exists():
                source += path.read_text()
        seen = set()
        for value in texts_in(source):
            plain = re.sub(r"\W", "", value)
            if len(plain) < 6 or value in seen or "\\" in value or sum(c.isdigit() for c in plain) < 4:
                continue
            seen.add(value)
            yield name, value, bool(module.is_valid(value))


def telephone_numbers(packages):
    """(region, kind, number) of the example numbers of libphonenumber."""
    sys.path.insert(0, str(packages.pypi("phonenumbers")))
    import phonenumbers

    for region in sorted(phonenumbers.SUPPORTED_REGIONS):
        for kind in (phonenumbers.PhoneNumberType.FIXED_LINE, phonenumbers.PhoneNumberType.MOBILE):
            number = phonenumbers.example_number_for_type(region, kind)
            if number:
                forms = phonenumbers.PhoneNumberFormat
                yield region, {
                    "international": phonenumbers.format_number(number, forms.INTERNATIONAL),
                    "national": phonenumbers.format_number(number, forms.NATIONAL),
                    "e164": phonenumbers.format_number(number, forms.E164),
                    "digits": phonenumbers.format_number(number, forms.E164).lstrip("+"),
                }


def account_numbers(packages):
    """IBANs in the tests of schwifty, valid by country, length and check digits, and those with wrong check digits."""
    sys.path.insert(0, str(packages.pypi("python-stdnum")))
    from stdnum import iban

    found = set()
    for path in sorted((packages.pypi("schwifty") / "tests").glob("test_iban*.py")):
        found.update(re.findall(r'"([A-Z]{2}\d{2}(?: ?[0-9A-Z]{1,4}){3,8})"', path.read_text()))
    for value in sorted(found):
        digits = value.replace(" ", "")
        number = "".join(str(int(char, 36)) for char in digits[4:] + digits[:4])
        if iban.is_valid(digits):
            yield value, True
        elif int(number) % 97 != 1:
            yield value, False
