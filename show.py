import sys
from build import parse
g,b=parse(sys.argv[2:],sys.argv[1])
for x in g:
    print(x['id'],x['kind'],x['contradicted']);print('  O',x['old']);print('  N',x['new']);print('  M',x['merged'])
    for y in b:
        if y['of']==x['id']: print('    ',y['id'][-1],y['kind'],y['side'],[y['dropped'],y.get('added')],y['merged'])
