from fix1 import sub
