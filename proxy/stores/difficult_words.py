"""What the difficult vendor says about each cause: frank sentences in several languages, and riddles that tell nothing.

In: nothing. Out: templates; `{model}`, `{id}` and `{n}` are filled in anew for each answer. A frank sentence means its
cause to any reader; a riddle means nothing, so that only the vendor's own mark beside it tells causes apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from proxy.canon.verdict import ErrorClass


class Cause(StrEnum):
    """Why the vendor answers with an error. `is_probeable`: can a caller bring it about?"""

    NO_KEY = "no_key"
    WRONG_KEY = "wrong_key"
    UNKNOWN_MODEL = "unknown_model"
    MALFORMED_JSON = "malformed_json"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    TOO_LONG = "too_long"
    MODERATED = "moderated"
    RATE_LIMITED = "rate_limited"
    DEBT = "debt"
    OVERLOADED = "overloaded"
    CONCURRENCY = "concurrency"
    VENDOR_TIMEOUT = "vendor_timeout"

    @property
    def is_probeable(self) -> bool:
        return self not in (Cause.DEBT, Cause.OVERLOADED, Cause.CONCURRENCY, Cause.VENDOR_TIMEOUT)

    @property
    def error_class(self) -> ErrorClass:
        return _CLASSES[self]


_CLASSES: Final[Mapping[Cause, ErrorClass]] = {
    Cause.NO_KEY: ErrorClass.AUTH_FAILURE,
    Cause.WRONG_KEY: ErrorClass.AUTH_FAILURE,
    Cause.UNKNOWN_MODEL: ErrorClass.MODEL_UNAVAILABLE,
    Cause.MALFORMED_JSON: ErrorClass.INVALID_REQUEST,
    Cause.MISSING_FIELD: ErrorClass.INVALID_REQUEST,
    Cause.WRONG_TYPE: ErrorClass.INVALID_REQUEST,
    Cause.TOO_LONG: ErrorClass.INVALID_REQUEST,
    Cause.MODERATED: ErrorClass.CONTENT_BLOCKED,
    Cause.RATE_LIMITED: ErrorClass.RATE_LIMITED,
    Cause.DEBT: ErrorClass.AUTH_FAILURE,
    Cause.OVERLOADED: ErrorClass.MODEL_UNAVAILABLE,
    Cause.CONCURRENCY: ErrorClass.RATE_LIMITED,
    Cause.VENDOR_TIMEOUT: ErrorClass.UPSTREAM_TIMEOUT,
}

FRANK: Final[Mapping[Cause, tuple[str, ...]]] = {
    Cause.NO_KEY: (
        "You didn't show us a key.",
        "No API key came with request {id}.",
        "请求 {id} 没有携带密钥",
        "این درخواست کلید ندارد",
        "Es wurde kein Schlüssel mitgeschickt ({id}).",
        "अनुरोध {id} में कुंजी नहीं है",
    ),
    Cause.WRONG_KEY: (
        "We do not know this key.",
        "The key of request {id} is not one of ours.",
        "密钥不存在，请检查",
        "این کلید شناخته نشد",
        "Dieser Schlüssel ist uns unbekannt ({id}).",
        "यह कुंजी मान्य नहीं है ({id})",
    ),
    Cause.UNKNOWN_MODEL: (
        "We have no model of the name {model}.",
        "{model}? Never heard of it.",
        "没有名为 {model} 的模型",
        "مدلی به نام {model} نداریم",
        "Ein Modell namens {model} gibt es hier nicht.",
        "{model} नाम का कोई मॉडल नहीं है",
    ),
    Cause.MALFORMED_JSON: (
        "The body stops making sense at character {n}.",
        "What you sent is not JSON.",
        "请求体不是合法的 JSON（第 {n} 个字符）",
        "متن درخواست JSON درستی نیست",
        "Der Text der Anfrage ist kein JSON (Zeichen {n}).",
        "अनुरोध का पाठ JSON नहीं है",
    ),
    Cause.MISSING_FIELD: (
        "Something that we need is not there.",
        "Request {id} has no messages.",
        "缺少必填字段",
        "یکی از فیلدهای لازم نیست",
        "In der Anfrage {id} fehlt ein Feld.",
        "एक आवश्यक फ़ील्ड नहीं मिला",
    ),
    Cause.WRONG_TYPE: (
        "A field holds another kind of value than it may.",
        "Request {id}: a word stands where a list should.",
        "字段类型不对",
        "نوع یکی از فیلدها نادرست است",
        "Ein Feld der Anfrage {id} hat den falschen Typ.",
        "एक फ़ील्ड का प्रकार ग़लत है",
    ),
    Cause.TOO_LONG: (
        "That is more text than {model} can read: {n} tokens.",
        "Please say it in fewer words; we counted {n}.",
        "输入共 {n} 个 token，模型读不下",
        "متن ورودی با {n} توکن بیش از اندازه بلند است",
        "Der Text ist mit {n} Token zu lang für {model}.",
        "पाठ बहुत लंबा है: {n} टोकन",
    ),
    Cause.MODERATED: (
        "We would rather not talk about this.",
        "Our reviewers stopped request {id}.",
        "您的提问不符合我们的规范",
        "این پرسش با قواعد ما سازگار نیست",
        "Zu dieser Frage sagen wir nichts ({id}).",
        "हम इस विषय पर उत्तर नहीं देते",
    ),
    Cause.RATE_LIMITED: (
        "Slow down, you have asked {n} times this minute.",
        "Too many requests from your side.",
        "请求太频繁，请放慢",
        "درخواست‌های شما پشت سر هم و زیاد است",
        "Sie fragen zu oft, schon {n} Mal in dieser Minute.",
        "आपके अनुरोध बहुत तेज़ी से आ रहे हैं",
    ),
    Cause.DEBT: (
        "You owe us {n} coins.",
        "Settle what you owe before you ask again.",
        "请先结清所欠的 {n} 元",
        "اعتبار حساب شما تمام شده است",
        "Ihr Guthaben ist aufgebraucht.",
        "आपके खाते में राशि नहीं बची",
    ),
    Cause.OVERLOADED: (
        "All our machines have their hands full.",
        "There are {n} others before you.",
        "机器都在忙，前面还有 {n} 人",
        "سرورهای ما پر هستند",
        "Alle Rechner sind ausgelastet.",
        "हमारे सर्वर व्यस्त हैं",
    ),
    Cause.CONCURRENCY: (
        "You already have {n} conversations open here.",
        "One window at a time, please; you have {n}.",
        "您同时打开了 {n} 个对话",
        "گفت‌وگوهای هم‌زمان شما بیش از {n} تاست",
        "Sie haben schon {n} Anfragen gleichzeitig offen.",
        "एक साथ {n} से अधिक अनुरोध खुले हैं",
    ),
    Cause.VENDOR_TIMEOUT: (
        "Our own machine did not come back to us within {n} ms.",
        "We waited for the answer in vain.",
        "内部等待已满 {n} 毫秒",
        "پاسخ از موتور ما به‌موقع نرسید",
        "Die Antwort kam intern nicht rechtzeitig.",
        "उत्तर समय पर नहीं आया",
    ),
}

#: The same for every cause: what stands beside the mark tells nothing.
RIDDLES: Final = (
    "The heron looks at you and says nothing.",
    "Not today ({id}).",
    "It rained {n} times this year.",
    "山高水长",
    "今天不宜出行（{id}）",
    "پرنده از این‌جا گذشت",
    "شب آرام است، {n} ستاره",
    "Der Fluss fließt weiter.",
    "नदी आज भी बहती है",
    "鳥は{n}羽いました",
    "Ветер северный, снег.",
    "🍵 {id}",
)
