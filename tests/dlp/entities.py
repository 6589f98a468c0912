"""The names that people and programs give to numbers of each kind.

The tables name each kind of number by the words of its own country; they are written without the
lists of the detectors, so that a word that the detectors lack is a miss.
"""

# Module of python-stdnum: (entity, words of people, keys of programs)
NUMBERS = {
    "ar.cuit": ("AR_CUIT", ["CUIT", "CUIL"], ["cuit", "cuitNumero"]),
    "at.vnr": ("AT_VNR", ["Sozialversicherungsnummer", "SV-Nummer"], ["svnr", "sozialversicherungsnummer"]),
    "au.abn": ("AU_ABN", ["ABN", "Australian Business Number"], ["abn", "abn_number"]),
    "au.acn": ("AU_ACN", ["ACN"], ["acn", "company_acn"]),
    "au.tfn": ("AU_TFN", ["TFN", "tax file number"], ["tfn", "taxFileNumber"]),
    "be.nn": ("BE_NN", ["Rijksregisternummer", "numéro de registre national"], ["rijksregisternummer", "niss", "nationalNumber"]),
    "bg.egn": ("BG_EGN", ["ЕГН", "EGN"], ["egn"]),
    "br.cnpj": ("BR_CNPJ", ["CNPJ"], ["cnpj", "cnpj_empresa"]),
    "br.cpf": ("BR_CPF", ["CPF"], ["cpf", "cpfCliente"]),
    "ca.sin": ("CA_SIN", ["SIN", "social insurance number", "NAS"], ["sin", "socialInsuranceNumber"]),
    "ch.ssn": ("CH_SSN", ["AHV-Nummer", "numéro AVS"], ["ahvNummer", "avs"]),
    "cl.rut": ("CL_RUT", ["RUT", "RUN"], ["rut", "rut_cliente"]),
    "cn.ric": ("CN_RIC", ["身份证号", "resident identity card"], ["idCard", "身份证"]),
    "co.nit": ("CO_NIT", ["NIT"], ["nit", "nit_empresa"]),
    "cz.rc": ("CZ_RC", ["rodné číslo", "birth number"], ["rodneCislo", "rodne_cislo"]),
    "de.idnr": ("DE_IDNR", ["Steuer-ID", "Steueridentifikationsnummer", "IdNr."], ["steuerId", "steuer_identifikationsnummer"]),
    "de.stnr": ("DE_STNR", ["Steuernummer", "St.-Nr."], ["steuernummer", "steuer_nr"]),
    "dk.cpr": ("DK_CPR", ["CPR-nummer", "CPR"], ["cpr", "cprNummer"]),
    "do.cedula": ("DO_CEDULA", ["cédula"], ["cedula"]),
    "ec.ci": ("EC_CI", ["cédula de identidad", "cédula"], ["cedula", "numero_cedula"]),
    "ee.ik": ("EE_IK", ["isikukood"], ["isikukood"]),
    "es.ccc": ("ES_CCC", ["cuenta bancaria", "CCC"], ["cuenta", "ccc"]),
    "es.cif": ("ES_CIF", ["CIF"], ["cif"]),
    "es.dni": ("ES_DNI", ["DNI", "NIF"], ["dni", "nif"]),
    "es.nie": ("ES_NIE", ["NIE"], ["nie", "numeroNie"]),
    "fi.hetu": ("FI_HETU", ["henkilötunnus", "HETU"], ["hetu", "henkilotunnus"]),
    "fi.ytunnus": ("FI_YTUNNUS", ["Y-tunnus"], ["ytunnus", "y_tunnus"]),
    "fr.nif": ("FR_NIF", ["numéro fiscal", "numéro SPI"], ["numeroFiscal", "spi"]),
    "fr.nir": ("FR_NIR", ["numéro de sécurité sociale", "NIR"], ["nir", "numeroSecuriteSociale"]),
    "fr.siren": ("FR_SIREN", ["SIREN"], ["siren"]),
    "fr.siret": ("FR_SIRET", ["SIRET"], ["siret"]),
    "gb.nhs": ("GB_NHS", ["NHS number", "NHS No."], ["nhsNumber", "nhs_no"]),
    "gb.utr": ("GB_UTR", ["UTR", "Unique Taxpayer Reference"], ["utr"]),
    "gr.amka": ("GR_AMKA", ["AMKA", "ΑΜΚΑ"], ["amka"]),
    "gr.vat": ("GR_AFM", ["ΑΦΜ", "AFM"], ["afm"]),
    "hr.oib": ("HR_OIB", ["OIB"], ["oib"]),
    "ie.pps": ("IE_PPS", ["PPS number", "PPSN"], ["ppsn", "ppsNumber"]),
    "il.idnr": ("IL_IDNR", ["Teudat Zehut", "תעודת זהות"], ["teudatZehut", "teudat_zehut"]),
    "imei": ("IMEI", ["IMEI"], ["imei", "deviceImei"]),
    "in_.aadhaar": ("IN_AADHAAR", ["Aadhaar", "Aadhaar number"], ["aadhaar", "aadhaar_no"]),
    "in_.epic": ("IN_EPIC", ["voter id", "EPIC no."], ["voterId", "epic_no"]),
    "in_.gstin": ("IN_GSTIN", ["GSTIN"], ["gstin"]),
    "in_.pan": ("IN_PAN", ["PAN", "PAN card"], ["panNumber", "pan"]),
    "is_.kennitala": ("IS_KENNITALA", ["kennitala", "kt."], ["kennitala"]),
    "it.codicefiscale": ("IT_CODICEFISCALE", ["codice fiscale"], ["codiceFiscale", "codice_fiscale"]),
    "it.iva": ("IT_IVA", ["partita IVA", "P.IVA"], ["partitaIva", "piva"]),
    "ke.pin": ("KE_PIN", ["KRA PIN"], ["kraPin", "kra_pin"]),
    "kr.brn": ("KR_BRN", ["사업자등록번호"], ["businessRegistrationNumber", "brn"]),
    "kr.rrn": ("KR_RRN", ["주민등록번호", "RRN"], ["rrn", "residentRegistrationNumber"]),
    "lt.asmens": ("LT_ASMENS", ["asmens kodas"], ["asmensKodas", "asmens_kodas"]),
    "mx.curp": ("MX_CURP", ["CURP"], ["curp"]),
    "mx.rfc": ("MX_RFC", ["RFC"], ["rfc"]),
    "my.nric": ("MY_NRIC", ["MyKad", "NRIC"], ["nric", "mykad_no"]),
    "nl.bsn": ("NL_BSN", ["BSN", "burgerservicenummer"], ["bsn", "burgerServiceNummer"]),
    "no.fodselsnummer": ("NO_FODSELSNUMMER", ["fødselsnummer", "fnr"], ["fodselsnummer", "fnr"]),
    "no.orgnr": ("NO_ORGNR", ["organisasjonsnummer", "org.nr."], ["orgnr", "organisasjonsnummer"]),
    "nz.ird": ("NZ_IRD", ["IRD number"], ["irdNumber", "ird"]),
    "pe.ruc": ("PE_RUC", ["RUC"], ["ruc"]),
    "pk.cnic": ("PK_CNIC", ["CNIC"], ["cnic", "cnicNumber"]),
    "pl.nip": ("PL_NIP", ["NIP"], ["nip"]),
    "pl.pesel": ("PL_PESEL", ["PESEL"], ["pesel", "peselNumber"]),
    "pl.regon": ("PL_REGON", ["REGON"], ["regon"]),
    "pt.nif": ("PT_NIF", ["NIF", "número de contribuinte"], ["nif", "contribuinte"]),
    "ro.cnp": ("RO_CNP", ["CNP", "cod numeric personal"], ["cnp"]),
    "ru.inn": ("RU_INN", ["ИНН", "INN"], ["inn"]),
    "se.orgnr": ("SE_ORGNR", ["organisationsnummer", "org.nr"], ["orgnr", "organisationsnummer"]),
    "se.personnummer": ("SE_PERSONNUMMER", ["personnummer"], ["personnummer", "personNr"]),
    "sg.uen": ("SG_UEN", ["UEN"], ["uen"]),
    "si.ddv": ("SI_DDV", ["davčna številka"], ["davcna", "davcna_stevilka"]),
    "si.emso": ("SI_EMSO", ["EMŠO"], ["emso"]),
    "sk.rc": ("CZ_RC", ["rodné číslo"], ["rodneCislo"]),
    "th.pin": ("TH_PIN", ["เลขประจำตัวประชาชน", "Thai ID"], ["citizenId", "thai_id"]),
    "tr.tckimlik": ("TR_TCKIMLIK", ["T.C. Kimlik No", "TCKN"], ["tckn", "tcKimlikNo"]),
    "tr.vkn": ("TR_VKN", ["vergi kimlik numarası", "VKN"], ["vkn", "vergiNo"]),
    "ua.rntrc": ("UA_RNTRC", ["РНОКПП", "ІПН"], ["rnokpp"]),
    "us.ein": ("US_EIN", ["EIN"], ["ein", "employerIdentificationNumber"]),
    "us.itin": ("US_ITIN", ["ITIN"], ["itin"]),
    "us.ptin": ("US_PTIN", ["PTIN"], ["ptin"]),
    "us.rtn": ("US_RTN", ["routing number", "ABA"], ["routingNumber", "aba_routing"]),
    "us.ssn": ("US_SSN", ["SSN", "social security number"], ["ssn", "socialSecurityNumber"]),
    "ve.rif": ("VE_RIF", ["RIF"], ["rif"]),
    "za.idnr": ("ZA_IDNR", ["South African ID", "SA ID number"], ["saIdNumber", "sa_id"]),
    "bic": ("SWIFT_BIC", ["BIC", "SWIFT code"], ["bic", "swiftCode"]),
    "bitcoin": ("BITCOIN", ["bitcoin address", "BTC wallet"], ["btcAddress", "wallet"]),
}

# Kinds whose form says what they are; alone they are no bare number.
TELLING = {"BITCOIN", "IBAN_CODE", "CREDIT_CARD", "PHONE_NUMBER", "EMAIL"}

CARD = ("CREDIT_CARD", ["card number", "credit card", "Kreditkarte", "Visa", "carte bancaire", "tarjeta"],
        ["cardNumber", "card_number", "card", "creditCard", "pan", "cc_number"])
IBAN = ("IBAN_CODE", ["IBAN", "bank account", "Bankverbindung"], ["iban", "bankAccount", "account_iban"])
PHONE = ("PHONE_NUMBER",
         ["phone", "tel", "mobile", "Telefon", "téléphone", "teléfono", "cell phone", "telefone", "telefono"],
         ["phone", "phoneNumber", "mobile", "tel", "contact_phone", "telephone"])

# Passwords in the twenty most used languages of the web, and in code.
PASSWORD_WORDS = [
    "password", "Passwort", "Kennwort", "mot de passe", "contraseña", "senha", "wachtwoord", "lösenord",
    "пароль", "hasło", "密码", "パスワード", "비밀번호", "şifre", "parola", "heslo", "jelszó", "salasana",
    "adgangskode", "mật khẩu", "kata sandi", "סיסמה", "كلمة المرور", "κωδικός πρόσβασης", "пароля", "密碼",
]
PASSWORD_KEYS = [
    "password", "passwd", "pwd", "pass", "db_pass", "db_password", "dbPassword", "passphrase", "POSTGRES_PASSWORD", "MYSQL_ROOT_PASSWORD", "spring.datasource.password", "userPassword",
    "admin_password", "smtp_pass", "redisPassword", "ADMIN_PWD", "root_password", "keystorePassword", "LDAP_BIND_PASSWORD",
    "passwort", "kennwort", "mot_de_passe", "motDePasse", "contrasena", "contraseña", "senha", "wachtwoord", "losenord",
    "пароль", "haslo", "hasło", "密码", "パスワード", "비밀번호", "sifre", "şifre", "parola", "heslo", "jelszo", "salasana",
    "adgangskode", "mat_khau", "kata_sandi", "סיסמה",
]
# Names of what programs make and nobody chooses: no word stands below them.
SECRET_KEYS = ["secret", "client_secret", "api_secret", "authToken", "access_token", "API_KEY"]
